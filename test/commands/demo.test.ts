// npm run demo: every call of both variants and its answer, and what it says of a service that answers otherwise.
import { statSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { demoFile, loadDemoTenants, readDemoSecrets } from "../../src/commands/demo-tenants.ts";
import { findFreePort, listenOnLoopback } from "../support/listen.ts";
import { environmentOf, exitCodeOf, spawnProgram } from "../support/program.ts";
import { startService } from "../support/service.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";
import { listSteps, readSteps } from "./demo-steps.ts";
import { variantA, variantB } from "./demo-variants.ts";

const service = await startService(t, null);
const folder = makeTemporaryFolder("coupon-demo-");
t.teardown(() => removeFolder(folder));
const dataDir = path.join(folder, "data");
await loadDemoTenants(service.admin, service.keys, dataDir);

t.test("the secrets of the demo are readable by their owner only", (t) => {
  const modes = [dataDir, demoFile(dataDir)].map((file) => (statSync(file).mode & 0o777).toString(8));
  t.strictSame(modes, ["700", "600"]);
  t.end();
});

// Mints beside the demo, as `work` does.
async function runDemo(t: Test, env: Record<string, string>) {
  const program = spawnProgram("demo", { env: { ...environmentOf(service), ...env } });
  t.teardown(() => program.kill("SIGKILL"));
  let hasEnded = false;
  const output = Promise.all([text(program.stdout!), text(program.stderr!)]).finally(() => (hasEnded = true));
  const mintUntilEnd = async () => {
    await service.mint();
    return hasEnded;
  };
  await waitUntil("the end of the demo", mintUntilEnd, { everyMs: 100 });
  const [stdout, stderr] = await output;
  return { code: await exitCodeOf(program), stdout, stderr };
}

type Reply = { status: number; headers: Record<string, string>; body: string };
type Change = (reply: Reply, target: string) => Reply;

// Passes calls on to the service, and changes its answers. Slow enough to notice two calls at once.
async function startProxy(t: Test, change: Change = (reply) => reply) {
  const calls = { open: 0, mostOpen: 0 };
  const server = createServer(async (request, response) => {
    const [target, method] = [request.url!, request.method!];
    const sent = await text(request);
    const headers = Object.entries(request.headers).filter(
      ([name]) => name.startsWith("x-") || name === "content-type",
    );
    calls.open += 1;
    calls.mostOpen = Math.max(calls.mostOpen, calls.open);
    await sleep(40);
    const answer = await fetch(`${service.url}${target}`, {
      method,
      headers: headers as [string, string][],
      ...(method === "POST" && { body: sent }),
    });
    const reply = { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() };
    calls.open -= 1;
    const changed = change(reply, target);
    response.writeHead(changed.status, { ...changed.headers, "content-length": Buffer.byteLength(changed.body) });
    response.end(changed.body);
  });
  const port = await listenOnLoopback(server);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: String(port), calls };
}

t.test(
  "demo takes coupons of both variants through every operation, and prints each call and its answer",
  async (t) => {
    const { port, calls } = await startProxy(t);
    const env = { HOST: "0.0.0.0", PORT: port, DATA_DIR: dataDir };
    const { code, stdout, stderr } = await runDemo(t, env);
    t.strictSame([code, stderr], [0, ""]);
    t.equal(calls.mostOpen, 1, "one call after the other");
    const [before, inA, inB, ...rest] = stdout.split(/^===.*===$/m);
    t.strictSame([before, rest], ["\n", []]);
    t.strictSame(
      stdout.split("\n").filter((line) => line.startsWith("===")),
      [variantA.heading, variantB.heading],
    );
    t.strictSame(readSteps(inA!), listSteps(variantA));
    t.strictSame(readSteps(inB!), listSteps(variantB));
  },
);

t.test("demo ends at the first answer that is not the expected one, and says what it should be", async (t) => {
  const rows: [string, string, string, Change][] = [
    [
      "a first answer that claims to be a replay",
      "Submit a batch",
      "the last answer should not be a replay",
      (reply) => ({ ...reply, headers: { ...reply.headers, "idempotent-replayed": "true" } }),
    ],
    [
      "a repeated answer that does not say so",
      "Send the same lock again: the first answer is repeated",
      "the last answer should be a replay",
      (reply) => {
        const { "idempotent-replayed": _, ...headers } = reply.headers;
        return { ...reply, headers };
      },
    ],
    [
      "another status of a coupon",
      "Look at the first coupon",
      "the coupon should be ISSUED",
      (reply, target) =>
        target === "/v1/coupons/query" ? { ...reply, body: reply.body.replace("ISSUED", "VOIDED") } : reply,
    ],
    [
      "a refusal with another code",
      "Redeem before the batch is released: refused",
      "the last answer should be COUPON_NOT_RELEASED",
      (reply) => ({ ...reply, body: reply.body.replace("COUPON_NOT_RELEASED", "COUPON_EXPIRED") }),
    ],
    [
      "a success in place of a refusal",
      "Lock it from another till: refused",
      "the last answer should be COUPON_LOCKED",
      (reply) => (reply.body.includes("COUPON_LOCKED") ? { ...reply, status: 200, body: '{"ok":true}' } : reply),
    ],
    [
      "a refusal in place of a success",
      "Confirm the lock",
      "confirm: COUPON_EXPIRED (409): No.",
      (reply, target) =>
        target === "/v1/coupons/confirm"
          ? { ...reply, status: 409, body: '{"code":"COUPON_EXPIRED","message":"No.","request_id":"r","details":null}' }
          : reply,
    ],
  ];
  for (const [name, lastTitle, message, change] of rows) {
    const { port } = await startProxy(t, change);
    const { code, stdout, stderr } = await runDemo(t, { PORT: port, DATA_DIR: dataDir });
    t.strictSame({ code, stderr }, { code: 1, stderr: `${message}\n` }, name);
    t.equal(stdout.trim().split("\n\n").at(-1)!.split("\n")[0], lastTitle, name);
  }
});

t.test("demo without a service, or without its secrets, says what to start", async (t) => {
  const port = String(await findFreePort());
  const empty = `${dataDir}/empty`;
  for (const [env, message] of [
    [{ DATA_DIR: empty, PORT: port }, `${demoFile(empty)} does not exist: run npm start with this DATA_DIR first`],
    [
      { DATA_DIR: dataDir, PORT: port, HOST: "0.0.0.0" },
      `no service at http://127.0.0.1:${port}: run npm start, or set HOST and PORT to its values`,
    ],
    [
      { DATA_DIR: dataDir, PORT: port, HOST: "::" },
      `no service at http://[::1]:${port}: run npm start, or set HOST and PORT to its values`,
    ],
  ] as const)
    t.strictSame(await runDemo(t, env), { code: 1, stdout: "", stderr: `${message}\n` });
  const damaged = t.testdir({ "demo.json": '{"ak_demo_a":' });
  await t.rejects(readDemoSecrets(damaged), SyntaxError, "a damaged file is no missing file: nothing replaces it");
});
