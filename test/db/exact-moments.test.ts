// What is decided at the exact moment at which something ends, and one microsecond beside it. Only decisions by the
// time of the transaction or of the statement can be asked like this; races/clock*.test.ts asks those by the clock.
import t from "tap";
import { fillEveryTable } from "../support/every-table.ts";
import { openWorkerSession } from "../support/worker-session.ts";

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
