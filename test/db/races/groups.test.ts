// Calls of one group, sent to gate.perform as the service sends them. A call that would have to wait for another call
// of the group, or for another session, is handed back and writes nothing.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { untilBlocked } from "../../support/race.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { makeStock, openTill, type Stock } from "../../support/writers.ts";

let service: Running;
let stock: Stock;
let till: Awaited<ReturnType<typeof openTill>>;
t.before(async () => {
  service = await startService(t);
  stock = await makeStock(service, { again: 45, once: 0 });
  till = await openTill(service);
  // A call that waits instead of being handed back fails.
  await till.session.run("set lock_timeout = '3s'");
  t.teardown(() => till.session.end());
});

const merchant = "mch_a";
const nextCoupon = () => stock.again.pop()!.lookup;
const redeem = (coupon: string, more: object = {}) => ({ operation: "redeem", args: { coupon, merchant }, ...more });

const handedBack = "handed back";

// The outcomes in the order of the calls: 200, a code, or handed back.
async function answers(calls: { operation: string; args: object; body_hash?: null }[]): Promise<(number | string)[]> {
  const rows = await till.send(calls, false).catch((error: Error) => error.message);
  if (typeof rows === "string") return [rows];
  return rows.map(({ http_status, body }) =>
    http_status === 200 ? 200 : http_status === null ? handedBack : (JSON.parse(body) as { code: string }).code,
  );
}

const count = async (table: string) =>
  (await service.owner.rows<{ count: number }>(`select count(*)::int as count from core.${table}`))[0]!.count;

t.test("The second redeem of a coupon in a group is handed back, and the other calls are answered", async (t) => {
  const [coupon, other] = [nextCoupon(), nextCoupon()];
  const before = [await count("redemption"), await count("request")];
  t.strictSame(
    await answers([redeem(coupon), redeem(other), redeem(coupon), { ...redeem(coupon), operation: "lock" }]),
    [200, 200, handedBack, "COUPON_REDEEMED"],
  );
  t.strictSame([(await count("redemption")) - before[0]!, (await count("request")) - before[1]!], [2, 3]);
  t.strictSame(await answers([redeem(coupon)]), ["COUPON_REDEEMED"], "the answer when the call runs again");
});

t.test("A second call with the same request_id or idempotency-key is handed back", async (t) => {
  const [id, key] = [newRequestId(), newRequestId()];
  const [first, second] = [nextCoupon(), nextCoupon()];
  t.strictSame(
    await answers([
      redeem(first, { request_id: id }),
      redeem(first, { request_id: id }),
      redeem(second, { idempotency_key: key }),
      redeem(second, { idempotency_key: key }),
      redeem(nextCoupon(), { request_id: id }),
      redeem(nextCoupon(), { idempotency_key: key }),
    ]),
    [200, handedBack, 200, handedBack, handedBack, handedBack],
    "whether its body is the same or not",
  );
  t.strictSame(
    await answers([redeem(first, { request_id: id }), redeem(second, { idempotency_key: key })]),
    [200, 200],
    "when it runs again it gets the first answer",
  );
});

t.test("Of two calls with the same nonce in a group one is accepted", async (t) => {
  const nonce = newRequestId();
  t.strictSame(
    await answers([
      redeem(nextCoupon(), { nonce }),
      redeem(nextCoupon(), { nonce }),
      redeem(nextCoupon(), { nonce: newRequestId() }),
    ]),
    [200, "NONCE_REUSED", 200],
  );
  t.strictSame(await answers([redeem(nextCoupon(), { nonce })]), ["NONCE_REUSED"]);
});

t.test("An unknown credential, a read and a refusal leave the other calls of their group alone", async (t) => {
  const coupon = nextCoupon();
  t.strictSame(
    await answers([
      redeem(nextCoupon(), { credential_id: 2147483647 }),
      { operation: "query", body_hash: null, args: { coupon, merchant } },
      { operation: "redeem", args: { coupon: nextCoupon(), merchant: "mch_none" } },
      redeem(coupon),
      { operation: "spend_nonce", body_hash: null, args: {} },
    ]),
    ["UNAUTHENTICATED", 200, "NOT_FOUND", 200, 200],
  );
});

t.test(
  "A call whose redemption a psql session has locked is handed back, and the other calls are answered",
  async (t) => {
    const [confirmed, cancelled, redeemed, taken, voided, unused] = Array.from({ length: 6 }, nextCoupon) as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const lockOf = (coupon: string) => ({ coupon, merchant, lock_request_id: `lock-${coupon}` });
    const lock = (coupon: string) => ({ ...redeem(coupon, { request_id: `lock-${coupon}` }), operation: "lock" });
    const granted = await till.send(
      [lock(confirmed), lock(cancelled), lock(taken), lock(voided), redeem(redeemed)],
      false,
    );
    const { redemption } = JSON.parse(granted[4]!.body) as { redemption: string };
    await service.owner.rows(
      "update core.redemption set lock_expires_at = started_at where lock_request_id = any ($1)",
      [[`lock-${taken}`, `lock-${voided}`]],
    );
    const calls = [
      { operation: "confirm", args: lockOf(confirmed) },
      { operation: "cancel", args: lockOf(cancelled) },
      { operation: "reverse", args: { redemption } },
      redeem(taken),
      { operation: "void", args: { coupon: voided, merchant } },
    ];
    const others = [{ operation: "void", args: { coupon: unused, merchant } }, redeem(nextCoupon())];
    const psql = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
    t.teardown(() => psql.end());
    await psql.run("begin");
    await psql.rows("select from core.redemption for update");
    await psql.rows("select from core.merchant for update");
    t.strictSame(await answers([...calls, ...others]), [...Array.from({ length: 5 }, () => handedBack), 200, 200]);
    const [lapsed] = await service.owner.rows<{ count: number }>("select jobs.lapse_locks(10) as count");
    t.equal(lapsed!.count, 0, "the job does not wait either");
    await psql.run("rollback");
    t.strictSame(await answers(calls), [200, 200, 200, 200, 200]);
  },
);

t.test("A call on a row that a psql session holds is handed back, and calls on other rows are answered", async (t) => {
  const a = service.as("ak_a");
  const parties = ["pty_held", "pty_free"].map((id) => ({ id, name: id, webhook: { url: "https://example.com" } }));
  await service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", parties }] });
  const orderBatch = () => service.makeBatch(a, "tpl_again", 1, { isReleased: false });
  const callsOn = (coupons: string[], batch: string, party: string) => [
    redeem(coupons[0]!),
    { ...redeem(coupons[1]!), operation: "lock" },
    { ...redeem(coupons[2]!), operation: "void" },
    { operation: "cancel", args: { coupon: coupons[3]!, lock_request_id: "comes later" } },
    { operation: "confirm", args: { coupon: coupons[4]!, merchant, lock_request_id: "no lock" } },
    { operation: "allocate_batch", args: { batch } },
    { operation: "test_webhook", args: { party, event_type: "coupon.voided" } },
    { operation: "replay_events", args: { party, from: "2020-01-01T00:00:00Z", to: "2020-01-02T00:00:00Z" } },
  ];
  const couponsOf = () => Array.from({ length: 5 }, nextCoupon);
  const [heldCoupons, heldBatch] = [couponsOf(), (await orderBatch()).id];
  const heldCalls = callsOn(heldCoupons, heldBatch, "pty_held");
  const freeCalls = callsOn(couponsOf(), (await orderBatch()).id, "pty_free");
  const psql = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
  t.teardown(() => psql.end());
  await psql.run("begin");
  await psql.rows("select from core.coupon where lookup_hash = any ($1::text[]::uuid[]) for update", [heldCoupons]);
  await psql.rows("select from core.batch where external_id = $1 for update", [heldBatch]);
  await psql.run(`select from core.webhook join core.party using (tenant_id, party_id)
                  where external_id = 'pty_held' for update of webhook`);
  const done = [200, 200, 200, "LOCK_NOT_FOUND", "LOCK_NOT_FOUND", 200, 200, 200];
  t.strictSame(await answers([...heldCalls, ...freeCalls]), [...heldCalls.map(() => handedBack), ...done]);
  await psql.run("rollback");
  t.strictSame(await answers(heldCalls), done);
});

t.test("An error rolls back the whole group", async (t) => {
  const coupon = nextCoupon();
  const before = await count("request");
  await t.rejects(till.send([redeem(coupon), { operation: "no_such_operation", args: {} }], false), { code: "20000" });
  t.equal(await count("request"), before);
  t.strictSame(await answers([redeem(coupon)]), [200]);
});

t.test("A lock that a psql session extends while a redeem waits for its row is live", async (t) => {
  const coupon = nextCoupon();
  const id = newRequestId();
  await till.send([{ ...redeem(coupon, { request_id: id }), operation: "lock" }], false);
  await service.owner.rows("update core.redemption set lock_expires_at = started_at where lock_request_id = $1", [id]);
  const psql = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
  t.teardown(() => psql.end());
  await psql.run("begin");
  const extend = "update core.redemption set lock_expires_at = now() + interval '1 hour' where lock_request_id = $1";
  await psql.rows(extend, [id]);
  const answer = till.send([redeem(coupon)], true);
  await untilBlocked(service, 1);
  await psql.run("commit");
  t.equal((JSON.parse((await answer)[0]!.body) as { code: string }).code, "COUPON_LOCKED");
});
