// How the HTTP side passes on the outcomes of the gate, and when it asks the database for anything else.
import t from "tap";
import { Unavailable } from "../../src/common/unavailable.ts";
import { hashBody } from "../../src/crypto/body-hash.ts";
import { parseMasterKeys } from "../../src/crypto/keys.ts";
import type { Gate } from "../../src/gate/gate.ts";
import { sendBytes, sendPlain } from "../support/client.ts";
import { fits } from "../support/fits.ts";
import { stopClock } from "../support/stop-clock.ts";
import { bodies, startStub } from "../support/stub.ts";

const lockPath = "/v1/coupons/lock";
const never = () => new Promise<never>(() => {});

t.test("A 503 says when to retry, and a 500 hides the error and logs it", async (t) => {
  const away = await startStub(t, { perform: async () => Promise.reject(new Unavailable("away")) });
  const answer = await away.asA.post(lockPath, bodies[lockPath]);
  fits(
    t,
    [answer.status, answer.json, answer.headers["retry-after"]],
    [503, { code: "UNAVAILABLE", request_id: "r-1", details: null }, "1"],
  );
  const broken = await startStub(t, { perform: async () => Promise.reject(new Error("secret detail")) });
  const failed = await broken.asA.post(lockPath, bodies[lockPath]);
  fits(t, [failed.status, failed.json.code], [500, "INTERNAL_ERROR"]);
  t.notMatch(failed.text, /secret detail/);
  fits(
    t,
    broken.log,
    [
      { request_id: "r-1", err: { message: "secret detail" } },
      { status: 500, code: "INTERNAL_ERROR" },
    ],
    "the log has the error",
  );
});

t.test("A replayed answer carries the header idempotent-replayed", async (t) => {
  const body = '{"code":"COUPON_VOIDED","message":"The coupon is voided.","request_id":"r-1","details":null}';
  const { asA, log } = await startStub(t, {
    perform: async () => ({
      status: 409,
      code: "COUPON_VOIDED",
      resource: null,
      body,
      isReplay: true,
    }),
  });
  const answer = await asA.post(lockPath, bodies[lockPath]);
  fits(t, [answer.status, answer.text, answer.headers["idempotent-replayed"]], [409, body, "true"]);
  fits(t, log.at(-1), {
    operation: "lock",
    status: 409,
    code: "COUPON_VOIDED",
    access_key: "ak_a",
    tenant_id: 7,
    is_replay: true,
    duration_ms: Number,
  });
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
      "replay_events",
      "test_webhook",
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

t.test(
  "No cache on the way keeps an answer, whether a success, a refusal or the answer to bytes that are not HTTP",
  async (t) => {
    const { url, asA } = await startStub(t);
    const replies = [
      await asA.post(lockPath, bodies[lockPath]),
      await asA.get("/v1/events"),
      await asA.get("/v1/events?limit=none"),
      await sendPlain(url, "GET", "/healthz"),
      await sendPlain(url, "GET", "/v1/events"),
    ];
    t.strictSame(
      replies.map(({ status, headers }) => [status, headers["cache-control"]]),
      [200, 200, 400, 200, 401].map((status) => [status, "no-store"]),
    );
    t.match(await sendBytes(url, "nonsense\r\n\r\n"), /^HTTP\/1.1 400 [^]*^cache-control: no-store\r$/m);
  },
);

t.test("healthz asks nothing of the database; readyz reads its version", async (t) => {
  let migration = "1";
  const { url } = await startStub(t, {
    readVersion: async () => (migration === "" ? never() : { migration, code: "1" }),
  });
  fits(t, await sendPlain(url, "GET", "/healthz"), { status: 200, text: '{"ok":true}' });
  fits(t, await sendPlain(url, "GET", "/readyz"), { status: 200, text: '{"ok":true}' });
  migration = "0";
  fits(t, await sendPlain(url, "GET", "/readyz"), { status: 503, json: { code: "UNAVAILABLE" } });
  migration = "";
  fits(t, await sendPlain(url, "GET", "/readyz"), { status: 503 }, "readyz gives up at its deadline");
  fits(t, await sendPlain(url, "GET", "/healthz"), { status: 200 });
});

t.test("A credential is cached once it is found, and looked up again while it is unknown", async (t) => {
  // A credential is remembered for 3 s.
  stopClock(t);
  const { asA, asB, lookups, gate } = await startStub(t);
  await Promise.all(Array.from({ length: 20 }, () => asA.get("/v1/batches/bat_1")));
  t.strictSame(lookups, ["ak_a"]);
  const find = gate.findCredential;
  gate.findCredential = async () => null;
  t.equal(
    (await asA.get("/v1/batches/bat_1")).status,
    200,
    "a cached credential: the database itself refuses a revoked one",
  );
  t.equal((await asB.get("/v1/batches/bat_1")).status, 401);
  gate.findCredential = find;
  t.equal((await asB.get("/v1/batches/bat_1")).status, 200);
});
