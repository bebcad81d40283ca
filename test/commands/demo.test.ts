// npm run demo: the steps of both variants, and what it says of a service that answers otherwise.
import { statSync } from "node:fs";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import t, { type Test } from "tap";
import { command } from "../../src/commands/demo.ts";
import { demoFile, loadDemoTenants, readDemoSecrets } from "../../src/commands/demo-tenants.ts";
import { findFreePort, listenOnLoopback } from "../support/listen.ts";
import { environmentOf } from "../support/program.ts";
import { startService } from "../support/service.ts";
import { useTemporaryFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";

const service = await startService(t, null);
const dataDir = `${useTemporaryFolder(t, "coupon-demo-")}/data`;
await loadDemoTenants(service.admin, service.keys, dataDir);

t.test("the secrets of the demo are readable by their owner only, and a damaged file is not replaced", async (t) => {
  const modes = [dataDir, demoFile(dataDir)].map((file) => (statSync(file).mode & 0o777).toString(8));
  t.strictSame(modes, ["700", "600"]);
  await t.rejects(readDemoSecrets(t.testdir({ "demo.json": '{"ak_demo_a":' })), SyntaxError);
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

// What was done, and the fields of the answer by which the demo goes on, or the refusal.
type Step = [title: string, operation: string, outcome: string];

const listSteps = (discount: number, reversed: string): Step[] => [
  ["Submit a batch", "createBatch", "PENDING"],
  ["Wait until it is minted", "getBatch", "COMPLETED"],
  ["Hand over the codes (npm run codes -- bat_… --unreleased)", "", "CODE, CODE, CODE"],
  ["Redeem before the batch is released: refused", "redeem", "COUPON_NOT_RELEASED"],
  ["Release the batch to its distributor", "allocateBatch", "ALLOCATED"],
  ["Look at the first coupon", "query", "ISSUED"],
  ["Lock it: the service computes the discount", "lock", `${discount}`],
  ["Send the same lock again: the first answer is repeated", "lock", `replay ${discount}`],
  ["Lock it from another till: refused", "lock", "COUPON_LOCKED"],
  ["Confirm the lock", "confirm", "REDEEMED"],
  ["Lock it once more: refused", "lock", "COUPON_REDEEMED"],
  ["Ask for the outcome of the confirm, as after a lost answer", "getRequest", "REDEEMED"],
  ["Reverse the redemption", "reverse", "REVERSED"],
  ["Look at the coupon again", "query", reversed],
  ["Redeem the second coupon in one step", "redeem", `${discount}`],
  ["Reuse that request_id with another amount: refused", "redeem", "IDEMPOTENCY_KEY_REUSED"],
  ["Lock the third coupon", "lock", `${discount}`],
  ["Cancel that lock", "cancel", "CANCELLED"],
  ["Void the coupon", "void", "VOIDED"],
  ["Look at it", "query", "VOIDED"],
];

function readStep(block: string): Step {
  const [title = "", call = "", result = ""] = block.split("\n").map((line) => line.trim());
  const operation = /^(\w+) \{/.exec(call)?.[1] ?? "";
  if (operation === "") return [title, "", call];
  const [, mark, body] = /^200 (\(Idempotent-Replayed\) )?(\{.*)$/.exec(result) ?? [];
  if (body === undefined) return [title, operation, /^\w+: ([A-Z_]+) \(4\d\d\): \S/.exec(result)?.[1] ?? result];
  const answer = JSON.parse(body) as Record<string, any>;
  const { status, discount_amount } = answer["batch"] ?? answer["coupon"] ?? answer["request"]?.response ?? answer;
  return [title, operation, `${mark === undefined ? "" : "replay "}${status ?? discount_amount}`];
}

t.test("demo takes coupons of both variants through every operation, and prints no code", async (t) => {
  const { printed, error } = await runDemo(t, { PORT: new URL(service.url).port });
  t.equal(error, null);
  t.notMatch(printed, /\b[0-9A-Z]{16}\b/);
  const shown = printed.replaceAll(/\bbat_[0-9a-z]{26} /g, "bat_… ").replaceAll(/\b[0-9A-Z]{4}·{12}/g, "CODE");
  const [before, headingA, inA, headingB, inB] = shown.split(/^(===.*===)$/m);
  t.strictSame(
    [before, headingA, headingB],
    [
      "\n",
      "=== Variant A: the credential identifies the tenant. 10 percent off, at most 8.00 EUR ===",
      "=== Variant B: the credential identifies a party. 5.00 EUR off, reversed coupons may be used again ===",
    ],
  );
  const stepsOf = (part: string) => part.trim().split("\n\n").map(readStep);
  t.strictSame(stepsOf(inA!), listSteps(6.45, "REDEEMED"));
  t.strictSame(stepsOf(inB!), listSteps(5, "ISSUED"));
});

type Reply = { status: number; headers: Record<string, string>; body: string };
type Change = (reply: Reply, target: string) => Reply;

// Passes calls on to the service, and changes its answers. Returns its port.
async function startProxy(t: Test, change: Change): Promise<number> {
  const server = createServer(async (request, response) => {
    const [target, method] = [request.url!, request.method!];
    const sent = await text(request);
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers))
      if (name.startsWith("x-") || name === "content-type") headers.set(name, String(value));
    const answer = await fetch(`${service.url}${target}`, {
      method,
      headers,
      ...(method === "POST" && { body: sent }),
    });
    const reply = { status: answer.status, headers: Object.fromEntries(answer.headers), body: await answer.text() };
    const changed = change(reply, target);
    response.writeHead(changed.status, { ...changed.headers, "content-length": Buffer.byteLength(changed.body) });
    response.end(changed.body);
  });
  const port = await listenOnLoopback(server);
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return port;
}

t.test("demo ends at the first answer that is not the expected one, and says what it should be", async (t) => {
  const refusal = '{"code":"COUPON_EXPIRED","message":"No.","request_id":"r","details":null}';
  const rows: [lastTitle: string, message: string, Change][] = [
    [
      "Submit a batch",
      "the last answer should not be a replay",
      (reply) => ({ ...reply, headers: { ...reply.headers, "idempotent-replayed": "true" } }),
    ],
    [
      "Send the same lock again: the first answer is repeated",
      "the last answer should be a replay",
      ({ headers: { "idempotent-replayed": _, ...headers }, ...reply }) => ({ ...reply, headers }),
    ],
    [
      "Look at the first coupon",
      "the coupon should be ISSUED",
      (reply, target) =>
        target.endsWith("query") ? { ...reply, body: reply.body.replace("ISSUED", "VOIDED") } : reply,
    ],
    [
      "Redeem before the batch is released: refused",
      "the last answer should be COUPON_NOT_RELEASED",
      (reply) => ({ ...reply, body: reply.body.replace("COUPON_NOT_RELEASED", "COUPON_EXPIRED") }),
    ],
    [
      "Confirm the lock",
      "confirm: COUPON_EXPIRED (409): No.",
      (reply, target) => (target.endsWith("confirm") ? { ...reply, status: 409, body: refusal } : reply),
    ],
  ];
  for (const [lastTitle, message, change] of rows)
    await t.test(message, async (t) => {
      const { printed, error } = await runDemo(t, { PORT: String(await startProxy(t, change)) });
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
