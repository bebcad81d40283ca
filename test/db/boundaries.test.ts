// Limits that the database keeps, one step inside and one step outside; and what is decided at the exact moment when
// something ends. test/db/attempts has the limits of single columns.
import { randomUUID } from "node:crypto";
import t from "tap";
import type { Coupon } from "../support/caller.ts";
import { fillEveryTable } from "../support/every-table.ts";
import { scenario, type Scenario } from "../support/scenario.ts";

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

// test/db/attempts/coupons.ts shows that the tables refuse longer ones.
t.test("The longest texts of a redemption and its reversal are stored", async (t) => {
  const { till, makeCoupons } = world.a;
  const [coupon] = (await makeCoupons(1)) as [Coupon];
  const [short, long] = ["x".repeat(64), "x".repeat(128)];
  await t.resolves(till.ok.redeem(coupon, { store: short, terminal: short, order_id: long }));
  await t.resolves(till.ok.reverse(coupon, { reason: "x".repeat(500) }));
});

// Nothing mints it: it is the last batch of this database.
t.test("A batch has at most 10,000,000 coupons", async (t) => {
  const { batch } = await world.a.maker.ok.createBatch("tpl_fixed", 10_000_000);
  t.equal(batch.total_count, 10_000_000);
  // test/db/attempts/batches.ts shows that the table refuses more.
});

// Only decisions by the time of the transaction or of the statement can be asked like this; races/clock.test.ts asks
// those by the clock. `ended`: the answer if it ended before or ends now. `later`: if it ends in a microsecond.
type Ending = { moved: string; where: string; question: string; ended: string | null; later: string | null };

const isIssued = "status = 'ISSUED'";
const isLocked = "status = 'LOCKED'";
const isValid = "valid_to > '2090-01-01'";
const lock = { moved: "redemption set lock_expires_at", where: isLocked };
const validity = { moved: "coupon set valid_to", where: isIssued };
const shown = (view: string, where: string) =>
  `select string_agg(distinct status, ' ') from report.${view} where stored_${where}`;
const checkLock = "(rules.check_lock(null, r, statement_timestamp())).code";
const order = `jsonb_populate_record(
  null::core.call, '{"variant": "A", "amount_unit": "major", "args": {"order_amount": 1000}}')`;
const decided = `rules.decide_redemption(${order}, 1, c, b, t, statement_timestamp())`;
const checkRedeemable = `select ((${decided}).refusal).code
  from core.coupon c
  join core.batch b using (batch_id)
  join core.template t on t.template_id = b.template_id and t.is_for_all_merchants and t.skus is null
  where b.status = 'ALLOCATED' and c.${isIssued}`;
const endings: Ending[] = [
  { ...lock, question: shown("redemption", isLocked), ended: "LAPSED", later: "LOCKED" },
  { ...lock, question: shown("coupon", isLocked), ended: "ISSUED", later: "LOCKED" },
  {
    ...lock,
    question: `select ${checkLock} from core.redemption r where ${isLocked}`,
    ended: "LOCK_EXPIRED",
    later: null,
  },
  { ...validity, question: shown("coupon", isIssued), ended: "EXPIRED", later: "ISSUED" },
  { ...validity, question: `${checkRedeemable} limit 1`, ended: "COUPON_EXPIRED", later: null },
  {
    moved: "coupon set valid_from",
    where: isValid,
    question: `${checkRedeemable} and c.${isValid} limit 1`,
    ended: null,
    later: "COUPON_NOT_YET_VALID",
  },
];

t.test("What ends now has ended, and what ends a microsecond later has not", async (t) => {
  const { session } = await fillEveryTable(t);
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
  for (const { moved, where, question, ended, later } of endings) {
    const seen: (string | null)[] = [];
    for (const shift of [-1, 0, 1]) {
      const [row] = await session.rows<{ answer: string | null }>("select pg_temp.ask($1, $2) as answer", [
        `update core.${moved} = statement_timestamp() + interval '${shift} microseconds' where ${where}`,
        question,
      ]);
      seen.push(row!.answer);
    }
    t.strictSame(seen, [ended, ended, later], question);
  }
});
