// Expiry: locks past their end and coupons past valid_to are recorded as such once, in small steps, with one event for
// each released coupon. Coupons whose valid_to an administrator has patched expire at that end.
import t from "tap";
import { connect } from "../../../src/database/connect.ts";
import type { Database, Session } from "../../../src/database/types.ts";
import type { Coupon } from "../../support/caller.ts";
import { fits } from "../../support/fits.ts";
import { arrangeBefore, untilPast } from "../../support/race.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import type { Batch, BatchOptions, Scene } from "../../support/scene.ts";
import { beginRequest, holdCoupon } from "../../support/sessions.ts";
import { createWorkerSteps } from "../../support/worker-steps.ts";

let world: Scenario;
let scene: Scene;
let till: Scene["till"]["ok"];
let psql: Session;
let worker: Database;
let expire: () => Promise<void>;
t.before(async () => {
  world = await scenario(t);
  scene = world.a;
  till = scene.till.ok;
  psql = await world.openPsql({ triggers: false });
  // A step must not wait for a row that a test holds: with this timeout it fails, and the test with it.
  const options = { name: "coupon test worker", role: "coupon_worker", max: 2, lockTimeoutMs: 5_000 };
  worker = connect(world.address, options);
  t.teardown(() => worker.end());
  expire = createWorkerSteps(t, world, { database: worker }).expire;
});

const make = (count: number, options: BatchOptions = {}) =>
  world.makeBatch(scene.maker, scene.template, count, options);

const extend = ({ id }: Coupon, to: string) =>
  world.admin.rows("select admin.extend_coupon('ten_a', $1, $2, 'to arrange a test')", [id, to]);

const step = async (name: "expire_coupons" | "lapse_locks", limit: number) =>
  (await worker.rows<{ done: number }>(`select jobs.${name}($1) as done`, [limit]))[0]!.done;

/** Ends the validity of a batch and its coupons as if time had passed, without a patch of the administrator. */
async function end(batch: Batch, when = "clock_timestamp()"): Promise<void> {
  await psql.rows(
    `update core.coupon c set valid_to = ${when} from core.batch b
     where b.batch_id = c.batch_id and b.external_id = $1`,
    [batch.id],
  );
  await psql.rows(
    `update core.batch b set valid_to = (select max(c.valid_to) from core.coupon c where c.batch_id = b.batch_id)
     where b.external_id = $1`,
    [batch.id],
  );
}

/** Counts the coupons of a batch by status and number of coupon.expired events: { "EXPIRED 1": 3 }. */
async function countCoupons(batch: Batch): Promise<Record<string, number>> {
  const rows = await world.owner.rows<{ what: string; count: number }>(
    `select s.what, count(*)::int from (
       select c.status || ' ' || (select count(*) from rules.event e
         where (e.tenant_id, e.coupon_id, e.event_type) = (c.tenant_id, c.coupon_id, 'coupon.expired')) as what
       from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1) s
     group by s.what`,
    [batch.id],
  );
  return Object.fromEntries(rows.map(({ what, count }) => [what, count]));
}

/** The statuses of coupons, in their order. */
async function statusesOf(...coupons: Coupon[]): Promise<string[]> {
  const rows = await world.owner.rows<{ status: string }>(
    `select c.status from unnest($1::text[]) with ordinality x (id, place)
     join core.coupon c on c.coupon_id = rules.parse_id('cpn', x.id) order by x.place`,
    [coupons.map(({ id }) => id)],
  );
  return rows.map(({ status }) => status);
}

t.test("a step is one transaction of at most the given number of rows; the last step returns 0", async (t) => {
  const batch = await make(250, { isOver: true });
  for (const [done, now] of [
    [100, { "EXPIRED 1": 100, "ISSUED 0": 150 }],
    [100, { "EXPIRED 1": 200, "ISSUED 0": 50 }],
    [50, { "EXPIRED 1": 250 }],
  ] as const) {
    t.equal(await step("expire_coupons", 100), done);
    t.strictSame(await countCoupons(batch), now);
  }
  t.equal(await step("expire_coupons", 100), 0);

  const { coupons } = await make(25);
  await Promise.all(coupons.map((coupon) => till.lock(coupon)));
  await Promise.all(coupons.map(scene.endLock));
  const steps = [];
  for (let index = 0; index < 4; index += 1) steps.push(await step("lapse_locks", 10));
  t.strictSame(steps, [10, 10, 5, 0]);
});

t.test("unreleased coupons past valid_to expire when their batch is released, valid ones do not", async (t) => {
  const [unreleased, live] = [await make(30, { isOver: true, isReleased: false }), await make(3)];
  await expire();
  t.strictSame(await countCoupons(unreleased), { "ISSUED 0": 30 });
  await till.allocateBatch(unreleased.id);
  await expire();
  t.strictSame(await countCoupons(unreleased), { "EXPIRED 1": 30 });
  t.strictSame(await countCoupons(live), { "ISSUED 0": 3 });
});

t.test("a coupon that is given back at the moment of its end expires too", async (t) => {
  const batch = await make(2);
  const [coupon] = batch.coupons as [Coupon];
  await till.lock(coupon);
  // The call reads the clock before the end and commits after it.
  const { finish, moment } = await arrangeBefore(
    world,
    async (moment) => {
      await end(batch, `'${moment}'`);
      const body = { request_id: newRequestId(), coupon: coupon.code, lock_request_id: coupon.lockRequestId };
      return { finish: await beginRequest(world, "ak_a", "cancel", body) };
    },
    (late) => late.finish("rollback"),
  );
  await untilPast(world, moment);
  await expire();
  await finish("commit");
  t.strictSame(await statusesOf(coupon), ["ISSUED"], "it was given back in time");
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 2 });
});

t.test("a coupon held by another transaction delays only the coupons after it in its batch", async (t) => {
  const [batch, other] = [await make(20, { isOver: true }), await make(5, { isOver: true })];
  const release = await holdCoupon(world, batch.coupons[10]!.id);
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 10, "ISSUED 0": 10 });
  t.strictSame(await countCoupons(other), { "EXPIRED 1": 5 });
  await release();
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 20 });
});

t.test("two concurrent workers write one event per coupon", async (t) => {
  const batches = [await make(600, { isOver: true }), await make(600, { isOver: true })];
  const { coupons } = await make(60);
  await Promise.all(coupons.map((coupon) => till.lock(coupon)));
  await Promise.all(coupons.map(scene.endLock));
  await Promise.all([expire(), expire()]);
  for (const batch of batches) t.strictSame(await countCoupons(batch), { "EXPIRED 1": 600 });
  t.strictSame(new Set(await statusesOf(...coupons)), new Set(["ISSUED"]));
});

t.test("an expiry is dated to the end of the validity or, if later, to when the coupon became free", async (t) => {
  const batch = await make(4);
  const [issued, lapsed, cancelled, lapsedBefore] = batch.coupons as [Coupon, Coupon, Coupon, Coupon];
  for (const coupon of [lapsed, cancelled, lapsedBefore]) await till.lock(coupon);
  await end(batch, "clock_timestamp() - interval '1 hour'");
  for (const [{ redemption }, age] of [
    [lapsed, "10 minutes"],
    [lapsedBefore, "2 hours"],
  ] as const)
    await psql.rows(
      `update core.redemption set lock_expires_at = clock_timestamp() - $2::text::interval
       where redemption_id = rules.parse_id('red', $1)`,
      [redemption, age],
    );
  await expire();
  await till.cancel(cancelled);
  const expired = await world.owner.rows<{ coupon: string; then: string }>(
    `select e.coupon,
            case e.occurred_at when c.valid_to then 'valid_to'
              when r.lock_expires_at then 'lock'
              when r.ended_at then 'cancel' end as then
     from report.event e
     join report.coupon c using (tenant_id, coupon_key)
     left join report.redemption r using (tenant_id, coupon_key)
     where e.event_type = 'coupon.expired' and c.batch = $1`,
    [batch.id],
  );
  t.strictSame(Object.fromEntries(expired.map((row) => [row.coupon, row.then])), {
    [issued.id]: "valid_to",
    [lapsedBefore.id]: "valid_to",
    [lapsed.id]: "lock",
    [cancelled.id]: "cancel",
  });
});

t.test("coupons with a patched end expire at that end, whatever the end of their batch", async (t) => {
  const [batch, unreleased] = [await make(5), await make(1, { isReleased: false })];
  const [shorter, longer, locked, redeemed] = batch.coupons as [Coupon, Coupon, Coupon, Coupon];
  await till.lock(locked);
  await till.redeem(redeemed);
  for (const coupon of [shorter, locked, unreleased.coupons[0]!]) await extend(coupon, "2021-01-01T00:00:00Z");
  await extend(longer, "2098-01-01T00:00:00Z");
  await expire();
  t.strictSame(
    await countCoupons(batch),
    { "EXPIRED 1": 1, "ISSUED 0": 2, "LOCKED 0": 1, "REDEEMED 0": 1 },
    "the batch is valid, one of its coupons is not",
  );
  const listed = () => psql.rows("select from core.coupon_extension x where x.valid_to < now()");
  t.equal((await listed()).length, 2, "the locked one and that of the other batch stay in the list");
  await till.cancel(locked);
  await end(batch, "case when c.number = 2 then c.valid_to else clock_timestamp() end");
  await psql.rows("update core.batch set valid_to = clock_timestamp() where external_id = $1", [batch.id]);
  await expire();
  t.strictSame(
    await countCoupons(batch),
    { "EXPIRED 1": 3, "ISSUED 0": 1, "REDEEMED 0": 1 },
    "the batch has ended, one of its coupons is still valid",
  );
  t.equal((await listed()).length, 1, "a lock has ended");
  t.strictSame(await statusesOf(longer), ["ISSUED"]);
  await extend(longer, "2021-01-01T00:00:00Z");
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 4, "REDEEMED 0": 1 });

  await till.allocateBatch(unreleased.id);
  await expire();
  t.strictSame(await countCoupons(unreleased), { "EXPIRED 1": 1 });
});

t.test("a coupon with a patched end that cannot expire delays no other, and expires once it is repaired", async (t) => {
  const [wrong, right] = (await make(2)).coupons as [Coupon, Coupon];
  await till.lock(wrong);
  await extend(wrong, "2021-01-01T00:00:00Z");
  await extend(right, "2021-01-02T00:00:00Z");
  await psql.rows("update core.coupon set status = 'ISSUED' where coupon_id = rules.parse_id('cpn', $1)", [wrong.id]);
  await expire();
  t.strictSame(await statusesOf(wrong, right), ["ISSUED", "EXPIRED"]);
  fits(t, await psql.rows("select work, party, subject, reason from report.stuck_work"), [
    { work: "expiry", party: "pty_a", subject: wrong.id, reason: /is EXPIRED, but its live redemption is LOCKED/ },
  ]);
  await psql.run("update core.stuck_work set tried_at = tried_at - interval '61 seconds'");
  const cancel = "update core.redemption set status = 'CANCELLED', ended_at = now()";
  await psql.rows(`${cancel} where redemption_id = rules.parse_id('red', $1)`, [wrong.redemption]);
  await expire();
  t.strictSame(await statusesOf(wrong), ["EXPIRED"]);
});

t.test("a coupon that psql frees after the expiry job has passed it expires alone", async (t) => {
  const batch = await make(1);
  const [locked] = batch.coupons as [Coupon];
  await till.lock(locked);
  await end(batch);
  await expire();
  const dba = await world.openPsql();
  const ofCoupon = `where coupon_id = rules.parse_id('cpn', '${locked.id}')`;
  await dba.run(`
    begin;
    update core.redemption set status = 'CANCELLED', ended_at = now() ${ofCoupon};
    update core.coupon set status = 'ISSUED' ${ofCoupon};
    commit`);
  t.strictSame(await countCoupons(batch), { "ISSUED 0": 1 });
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 1 });
});

t.test(
  "a step takes the patched ends that came first, at most its limit, and leaves out one that is held",
  async (t) => {
    const { coupons } = await make(4);
    for (const [index, year] of [2024, 2021, 2022, 2023].entries())
      await extend(coupons[index]!, `${year}-01-01T00:00:00Z`);
    const release = await holdCoupon(world, coupons[2]!.id);
    t.equal(await step("expire_coupons", 2), 2);
    t.strictSame(await statusesOf(...coupons), ["ISSUED", "EXPIRED", "ISSUED", "EXPIRED"]);
    t.equal(await step("expire_coupons", 2), 1);
    t.strictSame(await statusesOf(...coupons), ["EXPIRED", "EXPIRED", "ISSUED", "EXPIRED"]);
    await release();
    t.strictSame([await step("expire_coupons", 2), await step("expire_coupons", 2)], [1, 0]);
    t.strictSame(await statusesOf(...coupons), ["EXPIRED", "EXPIRED", "EXPIRED", "EXPIRED"]);
  },
);
