// Decisions by time: what counts is the clock after a wait, and not what was true when the call, patch or job began.
// The times that it writes are read after the wait too, so no row claims to be older than what another session did
// first.
import { randomUUID } from "node:crypto";
import t, { type Test } from "tap";
import { lookupHash } from "../../../src/crypto/coupon-code.ts";
import { fingerprintKeys } from "../../../src/crypto/key-fingerprint.ts";
import { newWebhookSecret } from "../../../src/crypto/webhook-signature.ts";
import { openSession, sqlState } from "../../../src/database/connect.ts";
import type { Session } from "../../../src/database/types.ts";
import { daySeconds, noonOffset, zoneOf } from "../../support/business-days.ts";
import type { Coupon } from "../../support/caller.ts";
import type { Reply } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { passWhileWaiting, untilBlocked, untilPast, type Holder } from "../../support/race.ts";
import { scenario } from "../../support/scenario.ts";
import { openGateSession } from "../../support/sessions.ts";
import { sequenceEvents } from "../../support/sequence-events.ts";
import { party } from "../../support/tenants.ts";
import { openWorkerSession } from "../../support/worker-session.ts";
import type { Operation, State } from "../api/states.ts";

const world = await scenario(t);
const psql = await world.openPsql();
const withoutTriggers = await world.openPsql({ triggers: false });
// No business day ends before a test ends it.
await world.owner.rows("update core.party set time_zone = $1", [zoneOf(noonOffset())]);

const makeCoupon = async (state?: State) => (await world.a.makeCoupons(1, state))[0]!;
const readHistory = ({ id }: Coupon) => readCouponHistory(world.owner, id);

const ofCoupon = "where coupon_id = rules.parse_id('cpn', $1)";
const endValidity = `update core.coupon set valid_to = clock_timestamp() ${ofCoupon}`;
const endLock = `update core.redemption set lock_expires_at = clock_timestamp() ${ofCoupon} and status = 'LOCKED'`;

const hold = `select from core.coupon ${ofCoupon} for update`;
const moments = {
  "its validity begins": {
    hold,
    change: `update core.coupon set valid_from = clock_timestamp() ${ofCoupon}`,
    isFixed: true,
  },
  "its validity ends": { hold, change: endValidity },
  "its lock expires": { hold, change: endLock, isFixed: true },
} satisfies Record<string, Holder>;

const patches = {
  "admin.void_coupon": "select admin.void_coupon('ten_a', $1, 'lost')",
  "admin.release_lock": "select admin.release_lock('ten_a', $1, 'till broke down')",
};
type Act = Exclude<Operation, "query"> | keyof typeof patches;

function perform(name: Act, coupon: Coupon): Promise<Reply | string> {
  if (name !== "admin.void_coupon" && name !== "admin.release_lock") return world.a.till[name](coupon);
  return world.admin.rows(patches[name], [coupon.id]).then(
    () => "accepted",
    (error) => sqlState(error) ?? String(error),
  );
}

function outcomeOf(answer: Reply | string): string {
  if (typeof answer === "string") return answer;
  return answer.status === 200 ? "accepted" : answer.json.code;
}

// The call, the state of its coupon, what happens during its wait, and the refusal or the status of the coupon then.
const decisions: [Act, State, keyof typeof moments, string][] = [
  ["redeem", "ISSUED", "its validity ends", "COUPON_EXPIRED"],
  ["lock", "ISSUED", "its validity ends", "COUPON_EXPIRED"],
  ["void", "ISSUED", "its validity ends", "COUPON_NOT_VOIDABLE"],
  ["admin.void_coupon", "ISSUED", "its validity ends", "CP409"],
  ["void", "ISSUED", "its validity begins", "→ VOIDED"],
  ["redeem", "not yet valid", "its validity begins", "→ REDEEMED"],
  ["lock", "not yet valid", "its validity begins", "→ LOCKED"],
  ["lock", "LOCKED by this lock", "its lock expires", "→ LOCKED"],
  ["redeem", "LOCKED by this lock", "its lock expires", "→ REDEEMED"],
  ["void", "LOCKED by this lock", "its lock expires", "→ VOIDED"],
  ["admin.void_coupon", "LOCKED by this lock", "its lock expires", "→ VOIDED"],
  ["confirm", "LOCKED by this lock", "its lock expires", "LOCK_EXPIRED"],
  ["cancel", "LOCKED by this lock", "its lock expires", "LOCK_EXPIRED"],
  ["admin.release_lock", "LOCKED by this lock", "its lock expires", "CP409"],
  ["confirm", "LOCKED by this lock", "its validity ends", "→ REDEEMED"],
  ["cancel", "LOCKED by this lock", "its validity ends", "→ EXPIRED"],
  ["admin.release_lock", "LOCKED by this lock", "its validity ends", "→ EXPIRED"],
  ["reverse", "REDEEMED, reissuable", "its validity ends", "→ EXPIRED"],
];

// All times of a coupon's rows, and of the records of requests. A lock counts from its beginning. The event of an
// expiry is dated to the end of the validity.
const timesOfCoupon = `
  select distinct at::text from (
    select unnest(array[r.started_at, r.redeemed_at, r.ended_at,
             case r.status when 'LOCKED' then r.lock_expires_at - make_interval(secs => t.lock_ttl_seconds) end]) as at
    from core.redemption r
    join core.coupon using (tenant_id, coupon_id)
    join core.batch using (tenant_id, batch_id)
    join core.template t using (tenant_id, template_id)
    ${ofCoupon}
    union all
    select unnest(array[recorded_at, case when event_type <> 'coupon.expired' then occurred_at end])
    from rules.event ${ofCoupon}
    union all
    select voided_at from core.voiding ${ofCoupon}
    union all
    select recorded_at from core.request) times
  where at is not null`;

async function readTimes({ id }: Coupon): Promise<string[]> {
  return (await world.owner.rows<{ at: string }>(timesOfCoupon, [id])).map(({ at }) => at);
}

/** The times are at or after the moment, and not much later. */
async function checkTimes(t: Test, times: string[], moment: string): Promise<void> {
  const [row] = await world.owner.rows<{ least: number; most: number }>(
    `select min(extract(epoch from at - $2::text::timestamptz))::float as least,
            max(extract(epoch from at - $2::text::timestamptz))::float as most
     from unnest($1::text[]::timestamptz[]) at`,
    [times, moment],
  );
  t.ok(times.length > 0 && row!.least >= 0 && row!.most < 60, `${times} since ${moment}`);
}

for (const [name, state, moment, expected] of decisions)
  t.test(`${name} of a coupon that is ${state} waits while ${moment}: ${expected}`, async (t) => {
    const coupon = await makeCoupon(state);
    const [before, times] = [await readHistory(coupon), await readTimes(coupon)];
    const passed = await passWhileWaiting(world, moments[moment], coupon.id, () => perform(name, coupon));
    const after = await readHistory(coupon);
    if (expected.startsWith("→ ")) {
      t.strictSame([outcomeOf(passed.answer), `→ ${after.status}`], ["accepted", expected]);
      const written = (await readTimes(coupon)).filter((time) => !times.includes(time));
      await checkTimes(t, written, passed.moment);
    } else {
      t.equal(outcomeOf(passed.answer), expected);
      t.strictSame(after, before, "nothing changes");
    }
  });

const readColumns = async <T = string>(text: string, key: unknown) =>
  Object.values((await world.owner.rows(text, [key]))[0]!) as T[];

/** A lease was counted from the moment or later, and does not last longer from now. */
async function checkLease(t: Test, seconds: number, lease: string, key: unknown, moment: string) {
  const [most, least] = await readColumns<number>(
    `select extract(epoch from ${lease} - '${moment}')::float, extract(epoch from ${lease} - clock_timestamp())::float
     as least`,
    key,
  );
  t.ok(most! >= seconds && least! < seconds, `from ${least} to ${most} s`);
}

t.test("The lease of a batch lasts 30 s from the end of the wait, and its times are later than the wait", async (t) => {
  const [gone, here] = [await openWorkerSession(t, world.address), await openWorkerSession(t, world.address)];
  const { batch } = await world.a.maker.ok.createBatch("tpl_fixed", 10);
  const [row] = await world.owner.rows<{ tenant_id: number; batch_id: number }>(
    "select tenant_id, batch_id from core.batch where external_id = $1",
    [batch.external_id],
  );
  const key = row!.batch_id;
  const ofBatch = [row!.tenant_id, key, randomUUID()];
  const hold = "select from core.batch where batch_id = $1 for update";
  // The lease of another worker runs out before the other session lets go of the row.
  const change = `update core.batch set mint_worker = ${gone.number}, mint_holder = gen_random_uuid(),
    mint_lease_until = clock_timestamp() where batch_id = $1`;
  const lease = () =>
    world.worker.rows(
      "select first_number, last_number from jobs.lease_batch($1, $2, $4, $3, 10000, $5::text::jsonb)",
      [...ofBatch, here.number, fingerprintKeys(world.keys)],
    );
  const mint = (first: number, count: number) => () =>
    world.worker.rows("select minted_count, is_complete from jobs.mint_chunk($1, $2, $3, $4, $5::text::uuid[])", [
      ...ofBatch,
      first,
      `{${Array.from({ length: count }, () => randomUUID())}}`,
    ]);
  const leaseEnd = "(select mint_lease_until from core.batch where batch_id = $1)";
  const claimed = await passWhileWaiting(world, { hold, change }, key, lease);
  t.strictSame([...claimed.answer], [{ first_number: 1, last_number: 10 }]);
  await checkLease(t, 30, leaseEnd, key, claimed.moment);
  const chunk = await passWhileWaiting(world, { hold }, key, mint(1, 9));
  t.strictSame([...chunk.answer], [{ minted_count: 9, is_complete: false }]);
  await checkLease(t, 30, leaseEnd, key, chunk.moment);

  const timesOf = (column: string, type: string) => `select b.${column}::text, e.occurred_at::text
    from core.batch b join rules.event e using (tenant_id, batch_id)
    where b.batch_id = $1 and e.event_type = '${type}'`;
  const last = await passWhileWaiting(world, { hold }, key, mint(10, 1));
  await checkTimes(t, await readColumns(timesOf("completed_at", "batch.generated"), key), last.moment);
  const allocate = () => world.a.maker.ok.allocateBatch(batch.external_id);
  const allocated = await passWhileWaiting(world, { hold }, key, allocate);
  await checkTimes(t, await readColumns(timesOf("allocated_at", "allocation.completed"), key), allocated.moment);
});

t.test("The lease of a subscriber lasts 60 s from the end of the wait", async (t) => {
  const webhook = { url: "http://127.0.0.1:1", secret: newWebhookSecret() };
  await world.apply({
    tenants: [{ id: "ten_b", name: "B", variant: "B", parties: [party("pty_dist", { webhook })] }],
  });
  await world.b.makeCoupons(1, "VOIDED");
  await sequenceEvents(world.worker);
  const [gone, here] = [await openWorkerSession(t, world.address), await openWorkerSession(t, world.address)];
  const [row] = await world.owner.rows<{ tenant_id: number; party_id: number }>("select * from core.webhook");
  const key = row!.party_id;
  // The lease of another worker and the pause of the subscriber run out meanwhile, and the old secret of a rotation.
  const change = `with replaced as (
      insert into core.replaced_secret (tenant_id, party_id, replaced_at, sealed_secret)
      select tenant_id, party_id, clock_timestamp() - interval '24 hours', sealed_secret
      from core.webhook where party_id = $1)
    update core.webhook set worker = ${gone.number}, holder = gen_random_uuid(),
      lease_until = clock_timestamp(), paused_until = clock_timestamp()
    where party_id = $1`;
  const holder = { hold: "select from core.webhook where party_id = $1 for update", change };
  const { answer, moment } = await passWhileWaiting(world, holder, key, () =>
    world.worker.rows<{ secrets: number }>(
      "select cardinality(sealed_secrets) as secrets from jobs.lease_deliveries($1, $2, $3, $4, 10)",
      [row!.tenant_id, key, here.number, randomUUID()],
    ),
  );
  t.strictSame(
    answer.map(({ secrets }) => secrets),
    [1, 1],
    "of allocation.completed and coupon.voided",
  );
  await checkLease(t, 60, "(select lease_until from core.webhook where party_id = $1)", key, moment);
});

const worker = openSession(world.address, { name: "coupon test worker", role: "coupon_worker" });
t.teardown(() => worker.end());

/** Runs a query in a transaction that began before `change`. */
async function runInOldTransaction<T>(session: Session, change: () => Promise<unknown>, run: () => Promise<T>) {
  await session.run("begin");
  await session.rows("select now()");
  await change();
  const answer = await run();
  await session.run("commit");
  return answer;
}
const runJob = (job: string, change: () => Promise<unknown>) =>
  runInOldTransaction(worker, change, () => worker.rows(`select jobs.${job} as done`));

t.test("A business day is closed when it is over by now, and its statement is ready after a wait", async (t) => {
  await makeCoupon("REDEEMED");
  await sequenceEvents(world.worker);
  const now = Math.floor(Date.now() / 1000);
  // Local time is now 4 s after midnight; the day is over 5 s after midnight.
  const closed = await runJob("close_days(10)", async () => {
    const zone = zoneOf(daySeconds - (now % daySeconds) + 4);
    await world.owner.rows("update core.party set time_zone = $1 where external_id = 'pty_a'", [zone]);
    await untilPast(world, new Date((now + 1) * 1000).toISOString());
  });
  t.strictSame([...closed], [{ done: 1 }]);

  const ofStatement = "s.tenant_id, s.distributor_id, s.business_date";
  await world.owner.rows(`select jobs.summarize_statement(${ofStatement}) from core.statement s`);
  const holder = { hold: "select from core.statement where $1::text is not null for update" };
  const finish = `
    select jobs.finish_statement(${ofStatement}, s.entry_count, 1, 'sha', 1, 1, 'sha') from core.statement s`;
  const { moment } = await passWhileWaiting(world, holder, "all", () => world.owner.rows(finish));
  const times = `select s.ready_at::text, e.occurred_at::text, e.recorded_at::text
    from core.statement s join rules.event e using (tenant_id, business_date) where e.event_type = $1`;
  await checkTimes(t, await readColumns(times, "reconciliation.ready"), moment);
});

t.test("The jobs take the locks and the coupons that are over by now", async (t) => {
  const locked = await makeCoupon("LOCKED by this lock");
  await runJob("lapse_locks(100)", () => withoutTriggers.rows(endLock, [locked.id]));
  fits(t, await readHistory(locked), { status: "ISSUED", redemptions: ["LAPSED"], events: [] });
  const ended = `select ended_at >= lock_expires_at from core.redemption ${ofCoupon}`;
  t.strictSame(await readColumns<boolean>(ended, locked.id), [true], "it ended no earlier than it expired");

  const extended = await makeCoupon();
  await runJob("expire_coupons(100)", () => psql.rows(endValidity, [extended.id]));
  const { id, coupons } = await world.makeBatch(world.a.maker, "tpl_fixed", 2);
  await runJob("expire_coupons(100)", async () => {
    for (const coupon of coupons) await withoutTriggers.rows(endValidity, [coupon.id]);
    await withoutTriggers.rows("update core.batch set valid_to = clock_timestamp() where external_id = $1", [id]);
  });
  for (const coupon of [extended, ...coupons])
    fits(t, await readHistory(coupon), { status: "EXPIRED", events: [{ type: "coupon.expired" }] });
});

t.test("A query and the creation of a batch see what is over by now", async (t) => {
  const coupon = await makeCoupon();
  const soon = await world.a.addTemplate({});
  const { session, send } = await openGateSession(world, "ak_a");
  t.teardown(() => session.end());
  const over = "update core.template set valid_to = clock_timestamp() where external_id = $1";
  const change = async () => {
    await psql.rows(endValidity, [coupon.id]);
    await withoutTriggers.rows(over, [soon]);
  };
  const query = { coupon: lookupHash(world.keys, coupon.code), merchant: "mch_a" };
  const calls = [
    { operation: "query", args: query, body_hash: null },
    { operation: "create_batch", args: { template: soon, total_count: 1, key_version: "1" } },
  ];
  const answers = await runInOldTransaction(session, change, () => send(calls, true));
  const bodies = answers.map(({ body }) => JSON.parse(body) as unknown);
  fits(t, bodies, [{ coupon: { status: "EXPIRED" } }, { code: "TEMPLATE_EXPIRED" }]);
});

t.test("A patch to a time that passes during its wait does not bring an EXPIRED coupon back", async (t) => {
  const coupon = await makeCoupon("EXPIRED");
  await world.worker.rows("select jobs.expire_coupons(100)");
  await psql.run("begin");
  await psql.rows(hold, [coupon.id]);
  const validTo = new Date(Date.now() + 700).toISOString();
  const patch = "select admin.extend_coupon('ten_a', $1, $2, 'to arrange a test')";
  const extended = t.resolves(world.admin.rows(patch, [coupon.id, validTo]));
  await untilBlocked(world, 1)
    .then(() => untilPast(world, validTo))
    .finally(() => psql.run("commit"));
  await extended;
  fits(t, await readHistory(coupon), { status: "EXPIRED", events: { length: 1 } });
});

t.test("A step of a recall leaves the coupons whose validity ends while it waits", async (t) => {
  const { id, coupons } = await world.makeBatch(world.a.maker, world.a.template, 2);
  await world.a.maker.ok.recallBatch(id);
  const last = coupons.at(-1)!;
  await psql.run("begin");
  await psql.rows("select from core.batch where external_id = $1 for update", [id]);
  const recalling = world.steps.recall();
  await untilBlocked(world, 1)
    .then(() => psql.rows(endValidity, [last.id]))
    .finally(() => psql.run("commit"));
  await recalling;
  fits(t, await readHistory(last), { status: "ISSUED", events: [] });
  fits(t, await readHistory(coupons[0]!), { status: "VOIDED" });
});
