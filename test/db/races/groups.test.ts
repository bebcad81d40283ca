// Calls of one group, sent to gate.perform_calls as the service sends them. A call that would have to wait for another
// call of the group, or for another session, is handed back and writes nothing. A name is a request_id or
// idempotency-key.
import t from "tap";
import { lookupHash } from "../../../src/crypto/coupon-code.ts";
import type { Session } from "../../../src/database/types.ts";
import { untilBlocked } from "../../support/race.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario } from "../../support/scenario.ts";
import { openGateSession, type GateCall } from "../../support/sessions.ts";
import { party } from "../../support/tenants.ts";

const merchant = "mch_a";
const handedBack = "handed back";
const codeOf = (body: string): string => JSON.parse(body).code;

const world = await scenario(t);
const coupons = (await world.a.makeCoupons(96)).map(({ code }) => lookupHash(world.keys, code));
const psql = await world.openPsql();
// A test that fails lets go of its rows.
t.afterEach(() => psql.run("rollback"));
const till = await openGateSession(world, "ak_a");
t.teardown(() => till.session.end());
// A call that waits instead of being handed back fails.
await till.session.run("set lock_timeout = '20s'");

const nextCoupon = () => coupons.pop()!;
const nextCoupons = (count: number) => Array.from({ length: count }, nextCoupon);
const call = (operation: string, args: object, more: object = {}): GateCall => ({ operation, args, ...more });
const redeem = (coupon: string, more: object = {}) => call("redeem", { coupon, merchant }, more);
const query = (coupon: string, more: object = {}) => call("query", { coupon, merchant }, { body_hash: null, ...more });
const stranger = { credential_id: 2147483647 };

/** The outcomes in the order of the calls: 200, a code, or handed back. */
async function answers(calls: GateCall[], mayWait = false): Promise<(number | string)[]> {
  const rows = await till.send(calls, mayWait);
  return rows.map(({ http_status, body }) => (http_status === null ? handedBack : (codeOf(body) ?? http_status)));
}

/** What another process of the service has performed and not yet committed. */
async function performElsewhere(calls: GateCall[]): Promise<Session> {
  const { session, send } = await openGateSession(world, "ak_a");
  t.teardown(() => session.end());
  await session.run("begin");
  await send(calls, false);
  return session;
}

const count = async (table: string) => (await world.owner.rows(`select from core.${table}`)).length;

t.test("The second redeem of a coupon in a group is handed back, and the other calls are answered", async (t) => {
  const [coupon, other] = nextCoupons(2) as [string, string];
  const before = [await count("redemption"), await count("request")] as const;
  const calls = [redeem(coupon), redeem(other), redeem(coupon), call("lock", { coupon, merchant })];
  t.strictSame(await answers(calls), [200, 200, handedBack, "COUPON_REDEEMED"]);
  t.strictSame([(await count("redemption")) - before[0], (await count("request")) - before[1]], [2, 3]);
  t.strictSame(await answers([redeem(coupon)]), ["COUPON_REDEEMED"], "the answer when the call runs again");
});

t.test("An unknown credential, a read and a refusal leave the other calls of their group alone", async (t) => {
  const spendNonce = call("spend_nonce", {}, { body_hash: null });
  const unknown = call("redeem", { coupon: nextCoupon(), merchant: "mch_none" });
  const [coupon, other] = nextCoupons(2) as [string, string];
  const calls = [redeem(other, stranger), query(coupon), unknown, redeem(coupon), spendNonce];
  t.strictSame(await answers(calls), ["UNAUTHENTICATED", 200, "NOT_FOUND", 200, 200]);
  for (const mayWait of [false, true]) {
    t.strictSame(await answers([redeem(other, stranger)], mayWait), ["UNAUTHENTICATED"], "alone");
    t.strictSame(await answers([spendNonce], mayWait), [200], "alone");
  }
});

t.test("A write without a body_hash, which would leave no record, is refused with its group", async (t) => {
  const [coupon, other] = nextCoupons(2) as [string, string];
  const writes = ["redeem", "lock", "confirm", "cancel", "void", "reverse", "create_batch", "allocate_batch"];
  writes.push("suspend_batch", "resume_batch", "recall_batch", "close_day");
  for (const operation of [...writes, "replay_events", "test_webhook"])
    await t.rejects(
      answers([redeem(other), call(operation, { coupon, merchant }, { body_hash: null })]),
      { message: `${operation} is a write: it needs a body_hash` },
      operation,
    );
  t.strictSame(await answers([redeem(coupon), redeem(other)]), [200, 200], "nothing was written");
});

t.test("A call whose redemption a psql session has locked is handed back; the others are answered", async (t) => {
  const names = ["confirmed", "cancelled", "redeemed", "taken", "voided", "unused", "lapsed"] as const;
  const of = Object.fromEntries(names.map((name) => [name, nextCoupon()])) as Record<(typeof names)[number], string>;
  const lockOf = (coupon: string) => ({ coupon, merchant, lock_request_id: `lock-${coupon}` });
  const toLock = [of.confirmed, of.cancelled, of.taken, of.voided, of.lapsed];
  await till.send(
    toLock.map((coupon) => call("lock", { coupon, merchant }, { request_id: `lock-${coupon}` })),
    false,
  );
  const [redeemed] = await till.send([redeem(of.redeemed)], false);
  const { redemption } = JSON.parse(redeemed!.body) as { redemption: string };
  const endLocks = (ended: string[]) =>
    world.owner.rows("update core.redemption set lock_expires_at = started_at where lock_request_id = any ($1)", [
      ended.map((coupon) => `lock-${coupon}`),
    ]);
  const lapseLocks = async () =>
    (await world.worker.rows<{ done: number }>("select jobs.lapse_locks(10) as done"))[0]!.done;
  await endLocks([of.lapsed]);
  t.equal(await lapseLocks(), 1);
  await endLocks([of.taken, of.voided]);
  const calls = [
    call("confirm", lockOf(of.confirmed)),
    call("cancel", lockOf(of.cancelled)),
    call("reverse", { redemption }),
    redeem(of.taken),
    call("void", { coupon: of.voided, merchant }),
  ];
  // None of these needs a redemption that exists.
  const others = [
    call("void", { coupon: of.unused, merchant }),
    redeem(nextCoupon()),
    redeem(of.lapsed),
    redeem(of.cancelled),
  ];
  await psql.run("begin; select from core.redemption for update; select from core.merchant for update");
  const answered = [200, 200, 200, "COUPON_LOCKED"];
  t.strictSame(await answers([...calls, ...others]), [...calls.map(() => handedBack), ...answered]);
  t.equal(await lapseLocks(), 0, "the job does not wait either");
  await psql.run("rollback");
  t.strictSame(await answers(calls), [200, 200, 200, 200, 200]);
});

t.test("Of the confirms of a lock in a group the first is granted, and the others are handed back", async (t) => {
  const [once, twice, both, retried, expired, cancelled] = nextCoupons(6) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  const lock = (coupon: string, id: string, more: object = {}) =>
    call("lock", { coupon, merchant }, { request_id: `${id} ${coupon}`, ...more });
  const confirm = (coupon: string, id = "lock") =>
    call("confirm", { coupon, merchant, lock_request_id: `${id} ${coupon}` });
  const all = [once, twice, both, retried, expired, cancelled];
  const keyOf = (coupon: string) => ({ idempotency_key: `key ${coupon}` });
  const locked = await answers(all.map((coupon) => lock(coupon, "lock", keyOf(coupon))));
  t.strictSame(locked, [200, 200, 200, 200, 200, 200]);
  // A lock may also be named by its retry.
  t.strictSame(await answers([both, retried].map((coupon) => lock(coupon, "retry", keyOf(coupon)))), [200, 200]);
  await world.owner.rows("update core.redemption set lock_expires_at = started_at where lock_request_id = $1", [
    `lock ${expired}`,
  ]);
  const before = await count("ledger_entry");
  const calls = [
    confirm(once),
    confirm(twice),
    confirm(both, "retry"),
    confirm(twice),
    confirm(both),
    confirm(retried, "retry"),
    confirm(retried, "retry"),
    confirm(expired),
    call("cancel", { coupon: cancelled, lock_request_id: `lock ${cancelled}` }),
    confirm(cancelled),
  ];
  const first = await answers(calls);
  t.strictSame(first, [200, 200, handedBack, handedBack, 200, 200, handedBack, "LOCK_EXPIRED", 200, "LOCK_CANCELLED"]);
  t.equal((await count("ledger_entry")) - before, 4);
  const again = await answers(calls.filter((_, place) => first[place] === handedBack));
  t.strictSame(again, ["LOCK_CONFIRMED", "LOCK_CONFIRMED", "LOCK_CONFIRMED"]);
});

t.test("A call on a row that a psql session holds is handed back, and calls on other rows are answered", async (t) => {
  const parties = ["pty_held", "pty_free"].map((id) => party(id, { webhook: { url: "https://example.com" } }));
  await world.apply({ tenants: [{ id: "ten_a", name: "A", variant: "A", parties }] });
  const makeCalls = async (webhookOf: string) => {
    const [one, two, three, four, five, expired] = nextCoupons(6) as [string, string, string, string, string, string];
    const { id: batch } = await world.makeBatch(world.a.maker, "tpl_fixed", 1, { isReleased: false });
    await till.send([call("lock", { coupon: expired, merchant }, { request_id: `lock-${expired}` })], false);
    await world.owner.rows("update core.redemption set lock_expires_at = started_at where status = 'LOCKED'");
    return [
      redeem(one),
      redeem(expired),
      call("lock", { coupon: two, merchant }),
      call("void", { coupon: three, merchant }),
      call("cancel", { coupon: four, lock_request_id: "comes later" }),
      call("confirm", { coupon: five, merchant, lock_request_id: "no lock" }),
      call("allocate_batch", { batch }),
      call("test_webhook", { party: webhookOf, event_type: "coupon.voided" }),
      call("replay_events", { party: webhookOf, from: "2020-01-01T00:00:00Z", to: "2020-01-02T00:00:00Z" }),
    ];
  };
  const held = await makeCalls("pty_held");
  const [free, waiting] = [await makeCalls("pty_free"), await makeCalls("pty_free")];
  const heldArgs = held.map(({ args }) => args as { coupon?: string; batch?: string });
  await psql.run("begin");
  await psql.rows("select from core.coupon where lookup_hash = any ($1::text[]::uuid[]) for update", [
    heldArgs.flatMap(({ coupon }) => coupon ?? []),
  ]);
  await psql.rows("select from core.batch where external_id = any ($1) for update", [
    heldArgs.flatMap(({ batch }) => batch ?? []),
  ]);
  await psql.run(`select from core.webhook join core.party using (tenant_id, party_id)
                  where external_id = 'pty_held' for update of webhook`);
  const done = [200, 200, 200, 200, "LOCK_NOT_FOUND", "LOCK_NOT_FOUND", 200, 200, 200];
  t.strictSame(await answers([...held, ...free]), [...held.map(() => handedBack), ...done]);
  for (const one of held) t.strictSame(await answers([one]), [handedBack], `${one.operation} alone`);
  for (const [index, one] of waiting.entries())
    t.strictSame(await answers([one], true), [done[index]], `${one.operation} does not wait for other rows`);
  await psql.run("rollback");
  t.strictSame(await answers(held), done);
});

t.test("A reversal waits for no redemption that its caller may not see", async (t) => {
  const [coupon] = await world.b.makeCoupons(1);
  const { redemption } = await world.b.till.ok.redeem(coupon!);
  const stranger = await openGateSession(world, "ak_other");
  t.teardown(() => stranger.session.end());
  await stranger.session.run("set lock_timeout = '1s'");
  await psql.run("begin; select from core.coupon for update");
  for (const mayWait of [false, true]) {
    const [refused] = await stranger.send([call("reverse", { redemption })], mayWait);
    t.equal(codeOf(refused!.body), "NOT_FOUND");
  }
  await psql.run("rollback");
});

t.test("A second call of a group with the same name is handed back, whether it is equal or not", async (t) => {
  const [id, key] = [{ request_id: newRequestId() }, { idempotency_key: newRequestId() }];
  const [first, second] = nextCoupons(2) as [string, string];
  const calls = [redeem(first, id), redeem(first, id), redeem(second, key), redeem(second, key)];
  const others = [redeem(nextCoupon(), id), redeem(nextCoupon(), key)];
  const expected = [200, handedBack, 200, handedBack, handedBack, handedBack];
  t.strictSame(await answers([...calls, ...others]), expected);
  t.strictSame(await answers([calls[1]!, calls[3]!]), [200, 200], "when it runs again it gets the first answer");
  const lone = redeem(nextCoupon(), { idempotency_key: newRequestId() });
  t.strictSame(await answers([lone]), [200], "a lone call");
  for (const mayWait of [false, true])
    t.strictSame(await answers([query(first, id)], mayWait), [200], "a read has no name to claim");
});

// Enough calls to lose their order when they are sorted.
t.test("Of many calls with the same name or coupon in a group, the first is performed", async (t) => {
  const many = <T>(make: (n: number) => T) => Array.from({ length: 63 }, (_, index) => make(index % 7));
  const expected = (outcome: number | string) => many<number | string>(() => handedBack).fill(outcome, 0, 7);
  const unknown = { coupon: "00000000-0000-0000-0000-000000000000", merchant };
  const byId = many((n) => call("void", unknown, { request_id: `many ${n}` }));
  t.strictSame(await answers(byId), expected("NOT_FOUND"));
  const byKey = many((n) => call("void", unknown, { idempotency_key: `key ${n}` }));
  t.strictSame(await answers(byKey), expected("NOT_FOUND"));
  const coupons = nextCoupons(7);
  t.strictSame(await answers(many((n) => redeem(coupons[n]!))), expected(200));
});

t.test("A call whose name another session uses is handed back, and the other calls are answered", async (t) => {
  const [request_id, idempotency_key] = [newRequestId(), newRequestId()];
  const other = await performElsewhere([redeem(nextCoupon(), { request_id, idempotency_key })]);
  const calls = [redeem(nextCoupon(), { request_id }), redeem(nextCoupon(), { idempotency_key })];
  t.strictSame(await answers([...calls, redeem(nextCoupon())]), [handedBack, handedBack, 200]);
  await other.run("rollback");
  t.strictSame(await answers(calls), [200, 200]);
  const [locks] = await world.owner.rows(
    `select count(distinct rules.compute_name_lock(tenant, caller, 'x'))::int as count
     from (values (1, 0), (2, 0), (1, 1), (2, 1)) v(tenant, caller)`,
  );
  t.strictSame(locks, { count: 4 }, "the names of each tenant and caller have their own locks");
});

t.test("Of calls with the same nonce one is accepted, and none waits for another session", async (t) => {
  const [twice, used] = [newRequestId(), newRequestId()];
  const [first, second, third] = nextCoupons(3).map((coupon) => redeem(coupon, { nonce: twice }));
  const calls = [first!, second!, redeem(nextCoupon(), { nonce: newRequestId() })];
  t.strictSame(await answers(calls), [200, "NONCE_REUSED", 200], "in a group");
  t.strictSame(await answers([third!]), ["NONCE_REUSED"]);

  const other = await performElsewhere([redeem(nextCoupon(), { nonce: used })]);
  const [credential] = await world.owner.rows(
    "select credential_id from core.credential where access_key = 'ak_a_second'",
  );
  const late = redeem(nextCoupon(), { nonce: used, request_id: newRequestId() });
  const ofAnother = redeem(nextCoupon(), { nonce: used, ...credential });
  // A statement that waits for a lock ends with an error.
  const outcomes = await answers([late, redeem(nextCoupon()), ofAnother]);
  t.strictSame(outcomes, ["NONCE_REUSED", 200, 200], "each credential has its own nonces");
  await other.run("rollback");
  t.strictSame(await answers([late]), [200], "the refusal is not recorded");
});

t.test("An old nonce can be used again while it is being deleted", async (t) => {
  const nonce = newRequestId();
  t.strictSame(await answers([redeem(nextCoupon(), { nonce })]), [200]);
  const age = "update core.nonce set seen_at = clock_timestamp() - interval '20 minutes' where nonce = $1";
  await world.owner.rows(age, [nonce]);
  // jobs.prune_nonces locks its rows and then deletes them.
  await psql.run("begin");
  await psql.rows("select from core.nonce where nonce = $1 for update", [nonce]);
  const again = answers([redeem(nextCoupon(), { nonce })]);
  await untilBlocked(world, 1);
  await psql.rows("delete from core.nonce where nonce = $1", [nonce]);
  await psql.run("commit");
  t.strictSame(await again, [200]);
  await world.owner.rows(age, [nonce]);
  const twice = [redeem(nextCoupon(), { nonce }), redeem(nextCoupon(), { nonce })];
  t.strictSame(await answers(twice), [200, "NONCE_REUSED"], "once in a group");
});

t.test("A lock whose cancel is answered while its group runs is refused, wherever the group has got to", async (t) => {
  const locks = nextCoupons(12).map((coupon) => call("lock", { coupon, merchant }, { request_id: newRequestId() }));
  const [first, last] = [locks[0]!, locks.at(-1)!];
  await answers([call("lock", first.args)]);
  // The group marks this lock as LAPSED, and waits there.
  await psql.run(`
    update core.redemption set lock_expires_at = clock_timestamp() where status = 'LOCKED';
    create function public.pause() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(1); return new; end';
    create trigger pause before update on core.redemption
    for each row when (new.status = 'LAPSED') execute function public.pause()`);
  t.teardown(() => psql.run("drop trigger pause on core.redemption; drop function public.pause()"));
  const other = await openGateSession(world, "ak_a");
  t.teardown(() => other.session.end());
  await psql.run("begin; select pg_advisory_xact_lock(1)");
  const group = answers(locks);
  await untilBlocked(world, 1);
  const cancel = call("cancel", { ...last.args, lock_request_id: last.request_id });
  const [cancelled] = await other.send([cancel], false);
  t.equal(codeOf(cancelled!.body), "LOCK_NOT_FOUND");
  await psql.run("commit");
  t.strictSame(await group, [...locks.slice(1).map(() => 200), "LOCK_CANCELLED"]);
});
