// npm run demo: the steps of both variants, and what it says of a service that answers otherwise.
import { chmodSync, statSync } from "node:fs";
import { connect, createServer } from "node:net";
import t, { type Test } from "tap";
import { command } from "../../src/commands/demo.ts";
import { demoFile, loadDemoTenants, readDemoSecrets } from "../../src/commands/demo-tenants.ts";
import { findFreePort, listenOnLoopback } from "../support/listen.ts";
import { environmentOf } from "../support/program.ts";
import { scenario } from "../support/scenario.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";

const service = await scenario(t, { http: true, file: null });
const dataDir = `${useTemporaryFolder(t, "coupon-demo-")}/data`;
await loadDemoTenants(service.admin, service.keys, dataDir);

t.test("the secrets of the demo are readable by their owner only, and a damaged file is not replaced", async (t) => {
  const modes = [dataDir, demoFile(dataDir)].map((file) => (statSync(file).mode & 0o777).toString(8));
  t.strictSame(modes, [process.getuid!() === 0 ? "711" : "700", "600"]);
  const damaged = t.testdir({ "demo.json": "root:$6$x:" });
  const refused = (rest: RegExp | string) => ({ name: "ConfigError", message: rest });
  chmodSync(demoFile(damaged), 0o600);
  t.throws(() => readDemoSecrets(damaged), refused(`${demoFile(damaged)} is not JSON`), "its text is not shown");
  const linked = t.testdir({ text: "root:$6$x:", "demo.json": t.fixture("symlink", "text") });
  t.throws(() => readDemoSecrets(linked), refused(`${demoFile(linked)} must not be a link`));
});

// Plays the demo in this process, and mints beside it as `work` does. Returns what it printed and its error.
async function runDemo(t: Test, env: Record<string, string>): Promise<{ printed: string; error: string | null }> {
  Object.assign(process.env, environmentOf(service), { HOST: "127.0.0.1", DATA_DIR: dataDir }, env);
  const log = t.capture(console, "log", () => {});
  let hasEnded = false;
  const error = command
    .read([])()
    .then(
      () => null,
      (reason: Error) => reason.message,
    )
    .finally(() => (hasEnded = true));
  const mintUntilEnd = async () => {
    await service.mint();
    return hasEnded;
  };
  await waitUntil("the end of the demo", mintUntilEnd, { everyMs: 50 });
  const printed = log()
    .map(({ args }) => `${String(args[0])}\n`)
    .join("");
  return { printed, error: await error };
}

t.test("demo takes coupons of both variants through every operation, and prints no code", async (t) => {
  const { printed, error } = await runDemo(t, { PORT: new URL(service.url).port });
  t.equal(error, null);
  t.notMatch(printed, /\b[0-9A-Z]{16}\b/);
  const [, headingA, inA = "", headingB, inB = ""] = printed.split(/^(===.*===)$/m);
  t.strictSame(
    [headingA, headingB],
    [
      "=== Variant A: the credential identifies the tenant. 10 percent off, at most 8.00 EUR ===",
      "=== Variant B: the credential identifies a party. 5.00 EUR off, reversed coupons may be used again ===",
    ],
  );
  for (const [part, discount] of [
    [inA, 6.45],
    [inB, 5],
  ] as const) {
    t.equal(part.trim().split("\n\n").length, 27, "steps");
    const operations = new Set([...part.matchAll(/^ *([a-z]\w+) \{/gim)].map(([, operation]) => operation));
    t.strictSame([...operations].sort(), [
      ..."allocateBatch cancel confirm createBatch getBatch getRedemption getRequest listBatches listRedemptions".split(
        " ",
      ),
      ..."lock query redeem resumeBatch reverse suspendBatch void".split(" "),
    ]);
    t.match(part, `200 (Idempotent-Replayed) {`);
    t.match(part, `"discount_amount":${discount}`);
    t.match(part, /\b[0-9A-Z]{4}·{12}/, "codes are masked");
  }
});

/** The service behind a proxy that puts another word of the same length into its answers. Returns the port. */
async function startLiar(t: Test, word: string, other: string): Promise<number> {
  const server = createServer((near) => {
    const far = connect(Number(new URL(service.url).port), "127.0.0.1");
    near.pipe(far);
    far.on("data", (chunk) => near.write(String(chunk).replaceAll(word, other)));
    for (const socket of [near, far]) socket.on("error", () => {});
    t.teardown(() => [near, far].forEach((socket) => socket.destroy()));
  });
  t.teardown(() => void server.close());
  return listenOnLoopback(server);
}

t.test("demo ends at the first answer that is not the expected one, and says what it should be", async (t) => {
  const replay = "idempotent-replayed";
  const rows: [lastTitle: string, message: string, word: string, other: string][] = [
    [
      "Redeem before the batch is released: refused",
      "the last answer should be COUPON_NOT_RELEASED",
      "COUPON_NOT_RELEASED",
      "COUPON_NOT_REDEEMED",
    ],
    ["Look at the first coupon", "the coupon should be ISSUED", "ISSUED", "VOIDED"],
    [
      "Lock it: the service computes the discount",
      "lock should give what query quoted",
      '"redeemable":true,"discount_amount":6.45',
      '"redeemable":true,"discount_amount":6.54',
    ],
    [
      "Send the same lock again: the first answer is repeated",
      "the last answer should be a replay",
      replay,
      replay.toUpperCase().replaceAll("-", "_"),
    ],
  ];
  for (const [lastTitle, message, word, other] of rows)
    await t.test(message, async (t) => {
      const { printed, error } = await runDemo(t, { PORT: String(await startLiar(t, word, other)) });
      t.equal(error, message);
      t.equal(printed.trim().split("\n\n").at(-1)!.split("\n")[0], lastTitle);
    });
});

t.test("demo without a service, or without its secrets, says what to start", async (t) => {
  const PORT = String(await findFreePort());
  const empty = `${dataDir}/empty`;
  const noService = (url: string) => `no service at ${url}: run npm start, or set HOST and PORT to its values`;
  const rows: [env: Record<string, string>, message: string][] = [
    [{ DATA_DIR: empty }, `${demoFile(empty)} does not exist: run npm start with this DATA_DIR first`],
    [{ HOST: "0.0.0.0" }, noService(`http://127.0.0.1:${PORT}`)],
    [{ HOST: "::" }, noService(`http://[::1]:${PORT}`)],
  ];
  for (const [env, error] of rows)
    await t.test(error, async (t) => t.strictSame(await runDemo(t, { PORT, ...env }), { printed: "", error }));
});
