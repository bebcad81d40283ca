// Calls of one group with the same name or coupon: the first is performed, the others are handed back. A name is a
// request_id or an idempotency-key. Nothing waits for a name or nonce that another session uses.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { type GroupTill, handedBack, merchant, redeem, startGroupTill } from "../../support/group-till.ts";
import { untilBlocked } from "../../support/race.ts";
import { newRequestId } from "../../support/service.ts";
import { openTill } from "../../support/writers.ts";

let group: GroupTill;
t.before(async () => {
  group = await startGroupTill(t, 24);
});

const nextCoupon = () => group.nextCoupon();
const answers: GroupTill["answers"] = (...args) => group.answers(...args);

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
  t.strictSame(await answers([redeem(nextCoupon(), { idempotency_key: newRequestId() })]), [200], "a lone call");
});

t.test("A call whose name another session uses is handed back, and the other calls are answered", async (t) => {
  const [id, key] = [newRequestId(), newRequestId()];
  const other = await openTill(group.service);
  t.teardown(() => other.session.end());
  await other.session.run("begin");
  await other.send([redeem(nextCoupon(), { request_id: id, idempotency_key: key })], false);
  const calls = [redeem(nextCoupon(), { request_id: id }), redeem(nextCoupon(), { idempotency_key: key })];
  t.strictSame(await answers([...calls, redeem(nextCoupon())]), [handedBack, handedBack, 200]);
  await other.session.run("rollback");
  t.strictSame(await answers(calls), [200, 200]);
});

t.test("The names of each tenant and caller have their own locks", async (t) => {
  const [row] = await group.service.owner.rows(
    `select count(distinct rules.compute_name_lock(tenant, caller, 'x'))::int as locks
     from (values (1, 0), (2, 0), (1, 1), (2, 1)) v(tenant, caller)`,
  );
  t.strictSame(row, { locks: 4 });
});

t.test("A nonce that another session uses counts as used, and nothing waits for that session", async (t) => {
  const nonce = newRequestId();
  const other = await openTill(group.service);
  t.teardown(() => other.session.end());
  await other.session.run("begin");
  await other.send([redeem(nextCoupon(), { nonce })], false);
  // A statement that waits for a lock ends with an error.
  const calls = [redeem(nextCoupon(), { nonce }), redeem(nextCoupon())];
  const [second] = await group.service.owner.rows(
    "select credential_id from core.credential where access_key = 'ak_a_second'",
  );
  const ofAnother = redeem(nextCoupon(), { nonce, ...second });
  t.strictSame(await answers([...calls, ofAnother]), ["NONCE_REUSED", 200, 200], "each credential has its own nonces");
  await other.session.run("rollback");
  t.strictSame(await answers([calls[0]!]), [200]);
});

t.test("An old nonce can be used again while it is being deleted", async (t) => {
  const { service } = group;
  const nonce = newRequestId();
  t.strictSame(await answers([redeem(nextCoupon(), { nonce })]), [200]);
  await service.owner.rows(
    "update core.nonce set seen_at = clock_timestamp() - interval '20 minutes' where nonce = $1",
    [nonce],
  );
  const pruner = openSession(service.address, { name: "coupon test" });
  t.teardown(() => pruner.end());
  // jobs.prune_nonces locks its rows and then deletes them.
  await pruner.run("begin");
  await pruner.rows("select from core.nonce where nonce = $1 for update", [nonce]);
  const again = answers([redeem(nextCoupon(), { nonce })]);
  await untilBlocked(service, 1);
  await pruner.rows("delete from core.nonce where nonce = $1", [nonce]);
  await pruner.run("commit");
  t.strictSame(await again, [200]);
});

// Enough calls to lose their order when they are sorted.
t.test("Of many calls with the same name or coupon in a group, the first is performed", async (t) => {
  const many = <T>(make: (n: number) => T) => Array.from({ length: 63 }, (_, index) => make(index % 7));
  const expected = (outcome: number | string) => many<number | string>(() => handedBack).fill(outcome, 0, 7);
  const unknown = { operation: "void", args: { coupon: "00000000-0000-0000-0000-000000000000", merchant } };
  t.strictSame(await answers(many((n) => ({ ...unknown, request_id: `many ${n}` }))), expected("NOT_FOUND"));
  t.strictSame(await answers(many((n) => ({ ...unknown, idempotency_key: `key ${n}` }))), expected("NOT_FOUND"));
  const coupons = Array.from({ length: 7 }, nextCoupon);
  t.strictSame(await answers(many((n) => redeem(coupons[n]!))), expected(200));
});
