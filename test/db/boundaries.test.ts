// Limits that the database keeps, one step inside and one step outside, whoever calls it; and what is decided at the
// exact moment at which something ends. test/db/attempts has the limits of single columns.
import { randomUUID } from "node:crypto";
import t, { type Test } from "tap";
import { lookupHash } from "../../src/crypto/coupon-code.ts";
import { sqlState } from "../../src/database/connect.ts";
import type { Coupon } from "../support/caller.ts";
import { fillEveryTable } from "../support/every-table.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { openWorkerSession } from "../support/worker-session.ts";
import { openTill } from "../support/writers.ts";

let world: Scenario;
t.before(async () => {
  world = await scenario(t);
});

t.test("A nonce is refused for 11 minutes, and accepted afterwards", async (t) => {
  const { till } = world.a;
  const useAfter = async (age: string) => {
    const nonce = randomUUID();
    t.equal((await till.get("/v1/batches/bat_none", { nonce })).json.code, "NOT_FOUND");
    await world.owner.rows("update core.nonce set seen_at = clock_timestamp() - $2::text::interval where nonce = $1", [
      nonce,
      age,
    ]);
    return (await till.get("/v1/batches/bat_none", { nonce })).json.code as string;
  };
  t.equal(await useAfter("0"), "NONCE_REUSED");
  t.equal(await useAfter("10 minutes 1 second"), "NONCE_REUSED");
  t.equal(await useAfter("11 minutes 1 millisecond"), "NOT_FOUND");
});

t.test("In a group, each access key has its own nonces, and uses each once", async (t) => {
  const [found] = await world.owner.rows<{ tenant_id: number; keys: number[] }>(
    `select tenant_id, array_agg(credential_id order by access_key) as keys
     from core.credential where access_key in ('ak_a', 'ak_a_second') group by tenant_id`,
  );
  const { tenant_id, keys } = found!;
  const nonce = randomUUID();
  const use = async (...credentials: number[]): Promise<(string | null)[]> => {
    const calls = credentials.map((credential_id) => ({
      credential_id,
      nonce,
      operation: "spend_nonce",
      request_id: "none",
      idempotency_key: null,
      body_hash: null,
      args: {},
    }));
    const answers = await world.owner.rows<{ code: string | null }>(
      "select code from gate.perform($1, $2::text::jsonb, false) order by ordinal",
      [tenant_id, JSON.stringify(calls)],
    );
    return answers.map(({ code }) => code);
  };
  const [first, second] = keys as [number, number];
  t.strictSame(await use(first, second, first), [null, null, "NONCE_REUSED"]);

  await world.owner.rows("update core.nonce set seen_at = clock_timestamp() - interval '12 minutes' where nonce = $1", [
    nonce,
  ]);
  t.strictSame(await use(first, first), [null, "NONCE_REUSED"], "an old one can be used again, once");
  const isRecent = "nonce = $1 and seen_at > clock_timestamp() - interval '11 minutes'";
  const renewed = await world.owner.rows<{ credential_id: number }>(
    `select credential_id from core.nonce where ${isRecent}`,
    [nonce],
  );
  t.strictSame(
    renewed.map(({ credential_id }) => credential_id),
    [first],
    "that of the other key stays old",
  );
});

t.test("A lock lasts 900 s, or 1 to 604,800 s if its template says so", async (t) => {
  const { till, addTemplate, makeCoupons } = world.a;
  const secondsOf = async (lock_ttl_seconds?: number) => {
    const template = await addTemplate(lock_ttl_seconds === undefined ? {} : { lock_ttl_seconds });
    const [coupon] = (await makeCoupons(1, "ISSUED", template)) as [Coupon];
    const { redemption } = await till.ok.lock(coupon);
    const [lock] = await world.owner.rows<{ seconds: number }>(
      `select extract(epoch from lock_expires_at - started_at)::int as seconds
       from core.redemption where redemption_id = rules.parse_id('red', $1)`,
      [redemption],
    );
    return lock!.seconds;
  };
  t.strictSame([await secondsOf(), await secondsOf(1), await secondsOf(604_800)], [900, 1, 604_800]);
  for (const lock_ttl_seconds of [0, 604_801])
    await t.rejects(addTemplate({ lock_ttl_seconds }), /lock_ttl_seconds/, `${lock_ttl_seconds}`);
});

/** A call of the gate by its own, with values that the HTTP layer would refuse. Returns the status or SQLSTATE. */
async function openDirectly(t: Test) {
  const till = await openTill(world);
  t.teardown(() => till.session.end());
  return (operation: string, args: object) =>
    till.send([{ operation, args }], true).then(([answer]) => answer!.http_status, sqlState);
}
const grantOf = ({ code }: Coupon, more: object) => ({
  coupon: lookupHash(world.keys, code),
  merchant: "mch_a",
  order_amount: 10,
  ...more,
});

t.test("An amount is 0 or more and below 10^12, whatever the HTTP layer lets through", async (t) => {
  const coupons = await world.a.makeCoupons(6);
  const perform = await openDirectly(t);
  const amounts: [string, number][] = [
    ["0", 200],
    ["999999999999.99", 200],
    ["1000000000000", 400],
    ["-0.01", 400],
    ['"NaN"', 400],
    ['"Infinity"', 400],
  ];
  for (const [index, [amount, status]] of amounts.entries()) {
    const args = grantOf(coupons[index]!, { order_amount: JSON.parse(amount) });
    t.equal(await perform("lock", args), status, amount);
  }
});

t.test("The longest texts of a redemption and its reversal are stored, and no longer ones", async (t) => {
  const coupons = await world.a.makeCoupons(6);
  const perform = await openDirectly(t);
  for (const [field, longest] of Object.entries({ store: 64, terminal: 64, order_id: 128 })) {
    const lock = (length: number) => perform("lock", grantOf(coupons.pop()!, { [field]: "x".repeat(length) }));
    t.strictSame([await lock(longest), await lock(longest + 1)], [200, "23514"], field);
  }
  const [{ redemption }] = (await world.a.makeCoupons(1, "REDEEMED")) as [Coupon];
  const reverse = (length: number) => perform("reverse", { redemption, reason: "x".repeat(length) });
  t.strictSame([await reverse(501), await reverse(500)], ["23514", 200], "reason");
});

t.test("One call of void_batch voids 10,000 coupons", async (t) => {
  const { id } = await world.makeBatch(world.a.maker, "tpl_fixed", 10_001);
  const voidBatch = async () =>
    (await world.admin.rows("select admin.void_batch('ten_a', $1, 'recalled') as count", [id]))[0]!["count"];
  t.strictSame([await voidBatch(), await voidBatch(), await voidBatch()], [10_000, 1, 0]);
});

// Nothing mints it: it is the last batch of this database.
t.test("A batch has at most 10,000,000 coupons", async (t) => {
  const { batch } = await world.a.maker.ok.createBatch("tpl_fixed", 10_000_000);
  t.equal(batch.total_count, 10_000_000);
  // test/db/attempts/batches.ts shows that the table refuses more.
});

// Only decisions by the time of the transaction or of the statement can be asked like this; races/clock.test.ts asks
// those by the clock.
interface Ending {
  what: string;
  /** Moves the ending to now, or to the microsecond before or after. */
  move: (shift: string) => string;
  question: string;
  /** If it ended a microsecond ago, if it ends now, and if it ends in a microsecond. */
  answers: [ended: string | null, now: string | null, later: string | null];
}

const retentions: Ending[] = [
  ["request", "recorded_at", "90 days", "jobs.prune_requests(90, 1000, 0, 1000)"],
  ["lock_cancellation", "recorded_at", "90 days", "jobs.prune_cancellations(90, 1000, 0, 1000)"],
  ["delivery_attempt", "attempted_at", "30 days", "jobs.prune_attempts(30, 1000, 0, 1000)"],
  ["feed_page", "sequenced_at", "400 days", "jobs.prune_feed(400, 1000)"],
  ["nonce", "seen_at", "11 minutes", "jobs.prune_nonces(1000)"],
].map(([table, column, age, prune]) => ({
  what: `the retention of core.${table}`,
  move: (shift) => `update core.${table} set ${column} = now() - interval '${age}' ${shift}`,
  question: `select ${prune} > 0`,
  answers: ["true", "false", "false"],
}));

const isLocked = "status = 'LOCKED'";
const views: Ending[] = [
  {
    what: "a lock, in report.redemption",
    move: (shift) => `update core.redemption set lock_expires_at = statement_timestamp() ${shift} where ${isLocked}`,
    question: `select string_agg(distinct status, ' ') from report.redemption where stored_${isLocked}`,
    answers: ["LAPSED", "LAPSED", "LOCKED"],
  },
  {
    what: "a lock, in report.coupon",
    move: (shift) => `update core.redemption set lock_expires_at = statement_timestamp() ${shift} where ${isLocked}`,
    question: `select string_agg(distinct status, ' ') from report.coupon where stored_${isLocked}`,
    answers: ["ISSUED", "ISSUED", "LOCKED"],
  },
  {
    what: "the validity of a coupon, in report.coupon",
    move: (shift) => `update core.coupon set valid_to = statement_timestamp() ${shift} where status = 'ISSUED'`,
    question: "select string_agg(distinct status, ' ') from report.coupon where stored_status = 'ISSUED'",
    answers: ["EXPIRED", "EXPIRED", "ISSUED"],
  },
];

const redeemable = "rules.check_redeemable(c, 'ALLOCATED', true, false, statement_timestamp())";
const isValid = "valid_to > '2090-01-01'";
const calls: Ending[] = [
  {
    what: "the validity of a coupon, for a lock or redeem",
    move: (shift) => `update core.coupon set valid_to = statement_timestamp() ${shift}`,
    question: `select ${redeemable} from core.coupon c where c.status = 'ISSUED' limit 1`,
    answers: ["COUPON_EXPIRED", "COUPON_EXPIRED", null],
  },
  {
    what: "the time before the validity of a coupon",
    move: (shift) => `update core.coupon set valid_from = statement_timestamp() ${shift} where ${isValid}`,
    question: `select ${redeemable} from core.coupon c where c.status = 'ISSUED' and ${isValid} limit 1`,
    answers: [null, null, "COUPON_NOT_YET_VALID"],
  },
  {
    what: "a lock, for a confirm or cancel",
    move: (shift) => `update core.redemption set lock_expires_at = statement_timestamp() ${shift} where ${isLocked}`,
    question: `select (rules.check_lock(null, r, statement_timestamp())).code from core.redemption r where ${isLocked}`,
    answers: ["LOCK_EXPIRED", "LOCK_EXPIRED", null],
  },
];

const isOpen =
  "update core.webhook set holder = null, worker = null, lease_until = null, paused_until = null, disabled_at = null";
// The worker that joined last, which is alive, holds the lease.
const isHeld = "holder = gen_random_uuid(), worker = (select last_value from core.worker_number)";
const subscribers: Ending[] = [
  ["the lease of a subscriber", `update core.webhook set ${isHeld}, lease_until = `],
  ["the pause of a subscriber", "update core.webhook set paused_until = "],
  [
    "the wait for an attempt",
    "delete from core.test_delivery; update core.delivery set parked_at = null, next_attempt_at = ",
  ],
].map(([what, set]) => ({
  what: what!,
  move: (shift) => `${isOpen}; ${set} statement_timestamp() ${shift}`,
  question: "select count(*) from jobs.list_due_webhooks(10)",
  answers: ["1", "1", "0"],
}));

const ofKey = (what: string, move: Ending["move"]): Ending => ({
  what,
  move,
  question: "select rules.is_key_in_use('9')",
  answers: ["false", "false", "true"],
});
// Ends the validity of the extended coupons. Their batches (=), or all others (<>), have the key 9. No batch has the
// number of its tenant.
const extend = (whose: "=" | "<>", shift: string) =>
  `update core.batch b
   set tenant_id = b.tenant_id + 1000, valid_to = '2020-01-02',
       key_version = case when b.batch_id ${whose} (
         select c.batch_id from core.coupon_extension x join core.coupon c using (tenant_id, coupon_id))
         then '9' else '1' end;
   update core.coupon c set tenant_id = c.tenant_id + 1000;
   update core.coupon_extension x
   set tenant_id = x.tenant_id + 1000, valid_to = now() - interval '7 days' ${shift}`;
const keys: Ending[] = [
  ofKey(
    "the week after a batch, in which its key is in use",
    (shift) => `delete from core.coupon_extension;
                update core.batch set key_version = '9', valid_to = now() - interval '7 days' ${shift}`,
  ),
  ofKey("the week after an extended coupon, in which its key is in use", (shift) => extend("=", shift)),
  {
    ...ofKey("the week after an extended coupon, in which other keys are not in use", (shift) => extend("<>", shift)),
    answers: ["false", "false", "false"],
  },
  ofKey(
    "the day after a rotation, in which the key of the old secret is in use",
    (shift) => `insert into core.replaced_secret (tenant_id, party_id, replaced_at, sealed_secret)
                select tenant_id, party_id, now() - interval '24 hours' ${shift}, '9' from core.webhook`,
  ),
];

t.test("What ends now has ended, and what ends a microsecond later has not", async (t) => {
  const { session, world } = await fillEveryTable(t);
  await openWorkerSession(t, world.address);
  // Triggers would refuse to change history.
  await session.run("set jit = off; set session_replication_role = replica");
  // One statement, so that both have the same time. Changes nothing in the end.
  await session.run(`
    create function pg_temp.ask(p_change text, p_question text) returns text
    language plpgsql as $$
    declare
      v_answer  text;
    begin
      execute p_change;
      execute p_question into v_answer;
      raise sqlstate 'UNDO1';
    exception when sqlstate 'UNDO1' then
      return v_answer;
    end
    $$`);
  for (const { what, move, question, answers } of [...retentions, ...views, ...calls, ...subscribers, ...keys]) {
    const seen: (string | null)[] = [];
    for (const shift of [-1, 0, 1]) {
      const [row] = await session.rows<{ answer: string | null }>("select pg_temp.ask($1, $2) as answer", [
        move(`+ interval '${shift} microseconds'`),
        question,
      ]);
      seen.push(row!.answer);
    }
    t.strictSame(seen, answers, what);
  }
});
