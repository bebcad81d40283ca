// The package as an integrator gets it: packed, installed into an empty folder, compiled strictly, and run by another
// Node over https with a private certificate authority.
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { makeCertificate, startHttps } from "../support/certificate.ts";
import { root } from "../support/copy.ts";
import { scenario } from "../support/scenario.ts";
import { secretOf } from "../support/tenants.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";

// tap adds NODE_OPTIONS to every child process, and tsc does not start with them.
const plain = (file: string, args: string[]) => ["-u", "NODE_OPTIONS", file, ...args];
const run = (file: string, args: string[], cwd: string) => promisify(execFile)("env", plain(file, args), { cwd });
const runToEnd = (file: string, args: string[], cwd?: string) =>
  spawnSync("env", plain(file, args), { cwd, encoding: "utf8" });

const till = `
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { createClient, isRefused, newRequestId, RefusedError } from "coupon-client";

const [url = "", secret = "", coupon = "", ca] = process.argv.slice(2);
const agent = ca === undefined ? null : new Agent({ keepAlive: true, ca: readFileSync(ca) });
const client = createClient<"A">({ url, accessKey: "ak_a", secret, attempts: 2, ...(agent !== null && { agent }) });
try {
  const request: { request_id: string; coupon: string; merchant: string } =
    { request_id: newRequestId(), coupon, merchant: "mch_a" };
  const { discount_amount, lock_expires_at }: { discount_amount: number; lock_expires_at: string } =
    await client.lock(request);
  const error: unknown = await client.lock({ ...request, request_id: newRequestId() }).catch((error: unknown) => error);
  const isLocked = isRefused(error, "COUPON_LOCKED") && error.details.lock_expires_at === lock_expires_at;
  const confirm = { request_id: newRequestId(), lock_request_id: request.request_id, coupon, merchant: "mch_a" };
  const { redemption } = await client.confirm(confirm);
  // @ts-expect-error: a party is no field of a coupon.
  const party: unknown = (await client.query({ coupon, merchant: "mch_a" })).coupon.party_id;
  console.log(JSON.stringify([process.version, discount_amount, isLocked, redemption.slice(0, 4), party ?? null]));
  // @ts-expect-error: a lock needs a merchant.
  void (() => client.lock({ request_id: "r", coupon }));
  // @ts-expect-error: no such code.
  void isRefused(error, "COUPON_LOST");
} catch (error) {
  console.log(error instanceof RefusedError ? error.code : String((error as { cause?: unknown }).cause));
}
client.close();
agent?.destroy();
`;

const declarations = `
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
declare const scannedCode: string, storedCursor: string, rawBody: Buffer;
declare const request: { headers: Record<string, string> };
declare function takePayment(amount: number): Promise<void>;
declare function showCashier(text: string): void;
declare function store(events: object[], cursor: string): Promise<void>;
`;

/** Installs the package into an empty folder, and compiles the till and the examples of its README there. */
async function install(t: Test): Promise<string> {
  // Outside the project, so that nothing of it is found by chance.
  const folder = useTemporaryFolder(t, "coupon-package-");
  await run("npm", ["pack", "--silent", "--pack-destination", folder], path.join(root, "clients/typescript"));
  const [packed] = readdirSync(folder);
  const { version } = JSON.parse(readFileSync(path.join(root, "clients/typescript/package.json"), "utf8"));
  t.equal(packed, `coupon-client-${version}.tgz`);
  writeFileSync(path.join(folder, "package.json"), '{ "type": "module" }');
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", `./${packed}`], folder);
  t.strictSame(
    readdirSync(path.join(folder, "node_modules")).filter((name) => !name.startsWith(".")),
    ["coupon-client"],
  );
  for (const name of ["@types", "undici-types"]) {
    mkdirSync(path.join(folder, "node_modules"), { recursive: true });
    symlinkSync(path.join(root, "node_modules", name), path.join(folder, "node_modules", name));
  }
  const readme = readFileSync(path.join(folder, "node_modules/coupon-client/README.md"), "utf8");
  const links = [...readme.matchAll(/\]\(([^)]+)\)/g)].map(([, address]) => address!);
  t.strictSame(
    links.filter((address) => !/^(https:|#)/.test(address)),
    [],
    "a package has no neighbours to link to",
  );
  const examples = [...readme.matchAll(/```ts\n([^]*?)```/g)].map(([, code]) => code!).join("");
  t.ok(examples.includes("verifyWebhook"));
  writeFileSync(path.join(folder, "examples.ts"), declarations + examples);
  writeFileSync(path.join(folder, "till.ts"), till);
  const options = "--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --skipLibCheck false --types node";
  const target = "--target es2022 --module nodenext";
  const tsc = path.join(root, "node_modules/.bin/tsc");
  const { status, stdout } = runToEnd(tsc, [...`${options} ${target}`.split(" "), "till.ts", "examples.ts"], folder);
  t.equal(status, 0, stdout);
  return folder;
}

/** The Node of the machine, which is not the one that runs the tests. */
function findOtherNode(): string | null {
  const files = (process.env["PATH"] ?? "").split(path.delimiter).map((folder) => path.join(folder, "node"));
  const versionOf = (file: string) => /^v(\d+)\./.exec(runToEnd(file, ["--version"]).stdout ?? "");
  const isOther = (file: string) => {
    const version = versionOf(file);
    return version !== null && Number(version[1]) >= 20 && version.input.trim() !== process.version;
  };
  return files.find(isOther) ?? null;
}

t.test("The installed package compiles strictly, and runs on another Node over http and https", async (t) => {
  const folder = await install(t);
  const service = await scenario(t, { http: true });
  const coupons = await service.a.makeCoupons(4);
  const start = async (node: string, url: string, ...ca: string[]) => {
    const { stdout } = await run(node, ["till.js", url, secretOf("ak_a"), coupons.pop()!.code, ...ca], folder);
    return stdout.trim();
  };
  const done = (version: string) => JSON.stringify([version, 5, true, "red_", null]);
  t.equal(await start(process.execPath, service.url), done(process.version));

  const other = findOtherNode();
  const noNode = other === null && "no other Node than that of the tests is in PATH";
  await t.test("on another Node", { skip: noNode }, async (t) => {
    const version = runToEnd(other!, ["--version"]).stdout.trim();
    t.equal(await start(other!, service.url), done(version), version);
  });

  const certificate = makeCertificate(folder, "IP:127.0.0.1");
  await t.test("over https", { skip: certificate === null && "no openssl to make a certificate" }, async (t) => {
    const url = await startHttps(t, certificate!, service.url);
    t.equal(await start(process.execPath, url, certificate!.file), done(process.version));
    t.match(await start(process.execPath, url), /self-signed certificate/, "without the authority");
  });
});
