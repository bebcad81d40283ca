// Calls of one group, sent to gate.perform as the service sends them. A call that would have to wait for another call
// of the group, or for another session, is handed back and writes nothing.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { fits } from "../../support/fits.ts";
import { type GroupTill, handedBack, merchant, redeem, startGroupTill } from "../../support/group-till.ts";
import { untilBlocked } from "../../support/race.ts";
import { newRequestId } from "../../support/service.ts";

let group: GroupTill;
t.before(async () => {
  group = await startGroupTill(t, 52);
});

const nextCoupon = () => group.nextCoupon();
const answers: GroupTill["answers"] = (...args) => group.answers(...args);

const count = async (table: string) =>
  (await group.service.owner.rows<{ count: number }>(`select count(*)::int as count from core.${table}`))[0]!.count;

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

t.test("A write without a body_hash, which would leave no record, is refused with its group", async (t) => {
  const [coupon, other] = [nextCoupon(), nextCoupon()];
  const writes = ["redeem", "lock", "confirm", "cancel", "void", "reverse", "create_batch", "allocate_batch"];
  for (const operation of [...writes, "replay_events", "test_webhook"])
    fits(
      t,
      await answers([redeem(other), { operation, body_hash: null, args: { coupon, merchant } }]),
      [`${operation} is a write: it needs a body_hash`],
      operation,
    );
  t.strictSame(await answers([redeem(coupon), redeem(other)]), [200, 200], "nothing was written");
});

t.test("A lone call of an unknown credential is refused, and a lone read has no request_id to claim", async (t) => {
  const coupon = nextCoupon();
  const id = newRequestId();
  t.strictSame(await answers([redeem(coupon, { request_id: id })]), [200]);
  for (const mayWait of [false, true]) {
    const stranger = redeem(nextCoupon(), { credential_id: 2147483647 });
    t.strictSame(await answers([stranger], mayWait), ["UNAUTHENTICATED"]);
    const query = { ...redeem(coupon, { request_id: id, body_hash: null }), operation: "query" };
    t.strictSame(await answers([query], mayWait), [200]);
    t.strictSame(await answers([{ operation: "spend_nonce", body_hash: null, args: {} }], mayWait), [200]);
  }
});

t.test(
  "A call whose redemption a psql session has locked is handed back, and the other calls are answered",
  async (t) => {
    const [confirmed, cancelled, redeemed, taken, voided, unused, lapsed] = Array.from({ length: 7 }, nextCoupon) as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const lockOf = (coupon: string) => ({ coupon, merchant, lock_request_id: `lock-${coupon}` });
    const lock = (coupon: string) => ({ ...redeem(coupon, { request_id: `lock-${coupon}` }), operation: "lock" });
    const granted = await group.till.send(
      [lock(confirmed), lock(cancelled), lock(taken), lock(voided), redeem(redeemed), lock(lapsed)],
      false,
    );
    const { redemption } = JSON.parse(granted[4]!.body) as { redemption: string };
    const { owner } = group.service;
    const endLocks = (coupons: string[]) =>
      owner.rows("update core.redemption set lock_expires_at = started_at where lock_request_id = any ($1)", [
        coupons.map((coupon) => `lock-${coupon}`),
      ]);
    const lapseLocks = async () =>
      (await owner.rows<{ count: number }>("select jobs.lapse_locks(10) as count"))[0]!.count;
    await endLocks([lapsed]);
    t.equal(await lapseLocks(), 1);
    await endLocks([taken, voided]);
    const calls = [
      { operation: "confirm", args: lockOf(confirmed) },
      { operation: "cancel", args: lockOf(cancelled) },
      { operation: "reverse", args: { redemption } },
      redeem(taken),
      { operation: "void", args: { coupon: voided, merchant } },
    ];
    // None of these needs a redemption that exists.
    const others = [
      { operation: "void", args: { coupon: unused, merchant } },
      redeem(nextCoupon()),
      redeem(lapsed),
      redeem(cancelled),
    ];
    const psql = openSession(group.service.address, { name: "coupon test", role: "coupon_owner" });
    t.teardown(() => psql.end());
    await psql.run("begin");
    await psql.rows("select from core.redemption for update");
    await psql.rows("select from core.merchant for update");
    t.strictSame(await answers([...calls, ...others]), [
      ...calls.map(() => handedBack),
      200,
      200,
      200,
      "COUPON_LOCKED",
    ]);
    t.equal(await lapseLocks(), 0, "the job does not wait either");
    await psql.run("rollback");
    t.strictSame(await answers(calls), [200, 200, 200, 200, 200]);
  },
);

t.test("A call on a row that a psql session holds is handed back, and calls on other rows are answered", async (t) => {
  const a = group.service.as("ak_a");
  const parties = ["pty_held", "pty_free"].map((id) => ({ id, name: id, webhook: { url: "https://example.com" } }));
  await group.service.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", parties }] });
  const orderBatch = () => group.service.makeBatch(a, "tpl_again", 1, { isReleased: false });
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
  const waitingCalls = callsOn(couponsOf(), (await orderBatch()).id, "pty_free");
  const psql = openSession(group.service.address, { name: "coupon test", role: "coupon_owner" });
  t.teardown(() => psql.end());
  await psql.run("begin");
  await psql.rows("select from core.coupon where lookup_hash = any ($1::text[]::uuid[]) for update", [heldCoupons]);
  await psql.rows("select from core.batch where external_id = $1 for update", [heldBatch]);
  await psql.run(`select from core.webhook join core.party using (tenant_id, party_id)
                  where external_id = 'pty_held' for update of webhook`);
  const done = [200, 200, 200, "LOCK_NOT_FOUND", "LOCK_NOT_FOUND", 200, 200, 200];
  t.strictSame(await answers([...heldCalls, ...freeCalls]), [...heldCalls.map(() => handedBack), ...done]);
  const alone = [];
  for (const call of heldCalls) alone.push(...(await answers([call])));
  t.strictSame(
    alone.splice(0),
    heldCalls.map(() => handedBack),
    "alone too",
  );
  for (const call of waitingCalls) alone.push(...(await answers([call], true)));
  t.strictSame(alone, done, "a call that may wait does not wait for other rows either");
  await psql.run("rollback");
  t.strictSame(await answers(heldCalls), done);
});

t.test("An expired lock stays as it is while a psql session holds its coupon", async (t) => {
  const [held, free] = [nextCoupon(), nextCoupon()];
  await group.till.send(
    [
      { ...redeem(held), operation: "lock" },
      { ...redeem(free), operation: "lock" },
    ],
    false,
  );
  await group.service.owner.rows("update core.redemption set lock_expires_at = started_at where status = 'LOCKED'");
  const psql = openSession(group.service.address, { name: "coupon test", role: "coupon_owner" });
  t.teardown(() => psql.end());
  await psql.run("begin");
  await psql.rows("select from core.coupon where lookup_hash = $1::text::uuid for update", [held]);
  t.strictSame(await answers([redeem(held)]), [handedBack]);
  t.strictSame(await answers([redeem(held), redeem(free)]), [handedBack, 200]);
  await psql.run("rollback");
  t.strictSame(await answers([redeem(held)]), [200]);
});

t.test("An error rolls back the whole group", async (t) => {
  const coupon = nextCoupon();
  const before = await count("request");
  await t.rejects(group.till.send([redeem(coupon), { operation: "no_such_operation", args: {} }], false), {
    code: "20000",
  });
  t.equal(await count("request"), before);
  t.strictSame(await answers([redeem(coupon)]), [200]);
});

t.test("A lock that a psql session extends while a redeem waits for its row is live", async (t) => {
  const coupon = nextCoupon();
  const id = newRequestId();
  await group.till.send([{ ...redeem(coupon, { request_id: id }), operation: "lock" }], false);
  await group.service.owner.rows("update core.redemption set lock_expires_at = started_at where lock_request_id = $1", [
    id,
  ]);
  const psql = openSession(group.service.address, { name: "coupon test", role: "coupon_owner" });
  t.teardown(() => psql.end());
  await psql.run("begin");
  const extend = "update core.redemption set lock_expires_at = now() + interval '1 hour' where lock_request_id = $1";
  await psql.rows(extend, [id]);
  const answer = group.till.send([redeem(coupon)], true);
  await untilBlocked(group.service, 1);
  await psql.run("commit");
  t.equal((JSON.parse((await answer)[0]!.body) as { code: string }).code, "COUPON_LOCKED");
});
