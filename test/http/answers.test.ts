// What callers get back: outcomes of the gate, the request_id, HEAD beside GET, and the health checks.
import t, { type Test } from "tap";
import { sign } from "../../clients/typescript/src/signature.ts";
import { Unavailable } from "../../src/common/unavailable.ts";
import { hashBody } from "../../src/crypto/body-hash.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import type { Gate } from "../../src/gate/gate.ts";
import { sendBytes, sendPlain, type Reply } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { stopClock } from "../support/stop-clock.ts";
import { bodies, code, lockPath, secret, startStub } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

t.test("A 503 says when to retry, and a 500 hides the error and logs it", async (t) => {
  const away = await startStub(t, { perform: async () => Promise.reject(new Unavailable("away")) });
  const { status, json, headers } = await away.lock();
  t.strictSame([status, json.code, json.request_id, headers["retry-after"]], [503, "UNAVAILABLE", "r-1", "1"]);
  const broken = await startStub(t, { perform: async () => Promise.reject(new Error("secret detail")) });
  const failed = await broken.lock();
  fits(t, failed, { status: 500, json: { code: "INTERNAL_ERROR" } });
  t.notMatch(failed.text, /secret detail/);
  fits(t, broken.log, [
    { request_id: "r-1", err: { message: "secret detail" } },
    { status: 500, code: "INTERNAL_ERROR" },
  ]);
});

t.test("Only calls that take long or return much have a transaction of their own", async (t) => {
  const seen = { own: [] as string[], shared: [] as string[] };
  const perform: Gate["perform"] = async (_, { operation }, __, { hasOwnTransaction = false } = {}) => {
    seen[hasOwnTransaction ? "own" : "shared"].push(operation);
    throw new Unavailable("not performed");
  };
  const { asA } = await startStub(t, { perform });
  for (const [path, body] of Object.entries(bodies)) await asA.post(path, body);
  for (const path of ["batches/bat_1", "requests/r-1", "events", "reconciliations", "webhook"])
    await asA.get(`/v1/${path}`);
  await asA.get("/v1/reconciliations/2026-01-31/detail");
  t.strictSame(seen, {
    own: [
      "create_batch",
      "allocate_batch",
      "suspend_batch",
      "resume_batch",
      "recall_batch",
      "close_day",
      "replay_events",
      "test_webhook",
      "open_portal",
      "pull_events",
      "list_reconciliations",
      "get_webhook",
      "get_reconciliation",
    ],
    shared: ["lock", "redeem", "confirm", "cancel", "void", "query", "reverse", "get_batch", "get_request"],
  });
});

t.test("The second attempt, with the hash by another key, has its own transaction if the first one had", async (t) => {
  const base64 = (byte: number) => Buffer.alloc(32, byte).toString("base64");
  const list = parseMasterKeys(`2:${base64(8)},1:${base64(7)}`);
  const seen: unknown[] = [];
  const reused = { status: 422, code: "IDEMPOTENCY_KEY_REUSED", resource: null, body: "{}", isReplay: false };
  const perform: Gate["perform"] = async (_, { operation, nonce, body_hash }, __, { hasOwnTransaction } = {}) => {
    seen.push([operation, nonce === null, body_hash, hasOwnTransaction ?? false]);
    return seen.length % 2 === 1 ? reused : { ...reused, status: 200, code: null };
  };
  const { asA } = await startStub(t, { perform }, {}, list);
  const attempts = (operation: string, path: string, hasOwnTransaction: boolean) =>
    ["2", "1"].map((key) => [operation, key === "1", hashBody(list, bodies[path]!, key), hasOwnTransaction]);
  for (const path of ["/v1/batches", lockPath]) t.equal((await asA.post(path, bodies[path])).status, 200, path);
  t.strictSame(seen, [...attempts("create_batch", "/v1/batches", true), ...attempts("lock", lockPath, false)]);
});

t.test("No cache on the way keeps an answer, whether a success or a refusal", async (t) => {
  const { url, asA, lock } = await startStub(t);
  const replies = [
    await lock(),
    await asA.get("/v1/events"),
    await asA.get("/v1/events?limit=none"),
    await sendPlain(url, "GET", "/healthz"),
    await sendPlain(url, "GET", "/v1/events"),
  ];
  t.strictSame(
    replies.map(({ status, headers }) => [status, headers["cache-control"]]),
    [200, 200, 400, 200, 401].map((status) => [status, "no-store"]),
  );
});

t.test("The request_id in header, body and log is the caller's, or generated", async (t) => {
  const { url, asA, lock, log } = await startStub(t);
  const check = (answer: Reply, id: string | RegExp) => {
    const inHeader = answer.headers["x-request-id"];
    fits(t, [inHeader, answer.json.request_id ?? id, log.at(-1)!["request_id"]], [id, id, id]);
    t.equal(inHeader, log.at(-1)!["request_id"]);
  };
  const generated = /^req_[0-9a-z]{26}$/;
  check(await sendPlain(url, "GET", "/healthz"), generated);
  check(await sendPlain(url, "GET", "/nothing"), generated);
  const json = { "content-type": "application/json" };
  check(await sendPlain(url, "POST", lockPath, json, '{"request_id":"mine"}'), "mine");
  check(await asA.post(lockPath, { request_id: "mine too" }), "mine too");
  check(await lock(), "r-1");
  for (const request_id of [1, "", "x".repeat(129), "a\u0007", null, `lock-${code.toLowerCase()}`])
    check(await lock({ request_id }), generated);
  check(await asA.get("/v1/batches/bat_1"), generated);
  const inHeader = async (request_id: string) => (await lock({ request_id })).headers["x-request-id"];
  t.equal(await inHeader("größe-返品"), encodeURIComponent("größe-返品"), "percent-encoded in the header");
  t.equal(log.at(-1)!["request_id"], "größe-返品");
  t.equal(await inHeader("  a b "), "%20%20a b%20", "and so are spaces at its ends");
});

// The same status and headers, without the body.
function isHeadOf(t: Test, head: Reply, get: Reply, what: string): void {
  const fixed = ({ headers: { date: _, "x-request-id": __, ...headers } }: Reply) => headers;
  t.equal(head.status, get.status, what);
  t.strictSame(fixed(head), fixed(get), what);
  t.equal(head.text, "", what);
  t.equal(head.headers["content-length"], String(Buffer.byteLength(get.text)), what);
}

t.test("HEAD answers as GET does, whatever the status", async (t) => {
  const { url, asA, calls } = await startStub(t);
  const targets = [
    "/v1/batches/bat_1",
    "/v1/events?limit=5",
    "http://any.example/v1/events",
    "/v1/events?limit=none",
    "/v1/nothing",
  ];
  for (const target of targets) isHeadOf(t, await asA.head(target), await asA.get(target), target);
  t.equal(calls.length, 6, "both are calls");
  for (const path of ["/healthz", "/readyz", "/v1/batches/bat_1"])
    isHeadOf(t, await sendPlain(url, "HEAD", path), await sendPlain(url, "GET", path), `${path}, unsigned`);
});

t.test("A HEAD is signed as HEAD, and needs a nonce like every request", async (t) => {
  const { asA } = await startStub(t);
  const nonce = "0123456789abcdef";
  t.equal((await asA.head("/v1/events", { nonce })).status, 200);
  t.equal((await asA.head("/v1/events", { nonce })).status, 401);
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signed = { method: "GET", target: "/v1/events", body: Buffer.alloc(0), timestamp, nonce: `${nonce}0` };
  const options = { nonce: signed.nonce, timestamp, headers: { "x-svc-signature": sign(secret, signed) } };
  t.equal((await asA.head("/v1/events", options)).status, 401, "the signature of a GET");
  t.equal((await asA.get("/v1/events", options)).status, 200);
});

t.test("healthz asks nothing of the database; readyz reads its version, or gives up at its deadline", async (t) => {
  let answer: () => ReturnType<Gate["readVersion"]>;
  const version = (migration: string) => async () => ({ migration, code: "1", cell: 1, server_cell: 1 });
  const { url, log } = await startStub(t, { readVersion: () => answer() });
  const probe = async (path: string) => {
    const { status, text } = await sendPlain(url, "GET", path);
    return [status, log.at(-1)!["level"], text.includes('{"ok":true}') || JSON.parse(text).code];
  };
  answer = version("1");
  t.strictSame(await probe("/readyz"), [200, 20, true], "a success is logged at debug level");
  answer = version("0");
  t.strictSame(await probe("/readyz"), [503, 30, "UNAVAILABLE"], "a failure at info level");
  answer = () => new Promise(() => {});
  t.strictSame(await probe("/readyz"), [503, 30, "UNAVAILABLE"]);
  t.strictSame(await probe("/healthz"), [200, 20, true]);
});

t.test("Probes that come together ask the database once", async (t) => {
  const asked: (() => void)[] = [];
  const readVersion: Gate["readVersion"] = () =>
    new Promise((resolve) => asked.push(() => resolve({ migration: "1", code: "1", cell: 1, server_cell: 1 })));
  const { url } = await startStub(t, { readVersion });
  // A check fails after 1.5 s.
  stopClock(t, { hasTimers: true });
  const probes = Array.from({ length: 100 }, () =>
    sendBytes(url, "GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
  );
  await waitUntil("a question", () => asked.length > 0);
  for (let turn = 0; turn < 2; turn += 1) await sendPlain(url, "GET", "/healthz");
  t.equal(asked.length, 1);
  asked.pop()!();
  t.equal((await Promise.all(probes)).join().match(/HTTP\/1.1 200 /g)?.length, 100);
  const next = sendPlain(url, "GET", "/readyz");
  await waitUntil("a second question", () => asked.length > 0);
  asked.pop()!();
  t.equal((await next).status, 200, "a result is not kept");
});
