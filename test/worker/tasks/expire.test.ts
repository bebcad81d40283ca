// Expiry: locks past their end and coupons past valid_to are recorded as such once, in small steps, with one event for
// each released coupon.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { startExpiryFixture, type ExpiryFixture } from "../../support/expiry-fixture.ts";
import { arrangeBefore, untilPast } from "../../support/race.ts";
import { newRequestId } from "../../support/service.ts";
import { beginRequest, holdCoupon } from "../../support/sessions.ts";

const merchant = "mch_a";

let fixture: ExpiryFixture;
t.before(async () => {
  fixture = await startExpiryFixture(t);
});

t.test(
  "released coupons past valid_to become EXPIRED with one event each; unreleased ones when their batch is released",
  async (t) => {
    const { expire, make, must, countCoupons } = fixture;
    const [released, unreleased, live] = [
      await make("tpl_past", 2_500),
      await make("tpl_past", 30, false),
      await make("tpl_live", 30),
    ];
    await expire();
    await expire();
    t.strictSame(await countCoupons(released), { "EXPIRED 1": 2_500 });
    t.strictSame(await countCoupons(unreleased), { "ISSUED 0": 30 });
    t.strictSame(await countCoupons(live), { "ISSUED 0": 30 });
    await must("/v1/batches/allocate", { batch: unreleased.id });
    await expire();
    t.strictSame(await countCoupons(unreleased), { "EXPIRED 1": 30 });
  },
);

t.test("a step is one transaction of at most the given number of rows; the last step returns 0", async (t) => {
  const { worker, make, lock, endLock, countCoupons } = fixture;
  const batch = await make("tpl_past", 250);
  const run = async (text: string) => (await worker.rows<{ done: number }>(`select ${text}(100) as done`))[0]!.done;
  for (const [done, now] of [
    [100, { "EXPIRED 1": 100, "ISSUED 0": 150 }],
    [100, { "EXPIRED 1": 200, "ISSUED 0": 50 }],
    [50, { "EXPIRED 1": 250 }],
  ] as const) {
    t.equal(await run("jobs.expire_coupons"), done);
    t.strictSame(await countCoupons(batch), now);
  }
  t.equal(await run("jobs.expire_coupons"), 0);

  const { codes, couponIds } = await make("tpl_live", 250);
  await Promise.all(codes.map(lock));
  await Promise.all(couponIds.map(endLock));
  const steps = [];
  for (let index = 0; index < 4; index += 1) steps.push(await run("jobs.lapse_locks"));
  t.strictSame(steps, [100, 100, 50, 0]);
});

t.test("the batch that ended first expires first", async (t) => {
  const { worker, make, end, countCoupons } = fixture;
  const [later, earlier] = [await make("tpl_live", 3), await make("tpl_live", 3)];
  await end(later, "clock_timestamp() - interval '1 hour'");
  await end(earlier, "clock_timestamp() - interval '2 hours'");
  for (const counts of [
    [{ "EXPIRED 1": 3 }, { "ISSUED 0": 3 }],
    [{ "EXPIRED 1": 3 }, { "EXPIRED 1": 3 }],
  ]) {
    await worker.rows("select jobs.expire_coupons(100)");
    t.strictSame([await countCoupons(earlier), await countCoupons(later)], counts);
  }
});

t.test("a lapsed lock returns its coupon or lets it expire, and the redemption is LAPSED", async (t) => {
  const { service, expire, make, lock, end, endLock, countCoupons } = fixture;
  const [live, ended] = [await make("tpl_live", 3), await make("tpl_live", 3)];
  for (const batch of [live, ended]) {
    await Promise.all(batch.codes.slice(0, 2).map(lock));
    await endLock(batch.couponIds[0]!);
  }
  await end(ended);
  await expire();
  await expire();
  t.strictSame(await countCoupons(live), { "ISSUED 0": 2, "LOCKED 0": 1 });
  t.strictSame(await countCoupons(ended), { "EXPIRED 1": 2, "LOCKED 0": 1 }, "a live lock outlasts valid_to");
  const rows = await service.owner.rows<{ status: string }>(
    `select r.status
     from core.redemption r
     where r.coupon_id in (rules.parse_id('cpn', $1), rules.parse_id('cpn', $2))`,
    [live.couponIds[0], ended.couponIds[0]],
  );
  t.strictSame(
    rows.map(({ status }) => status),
    ["LAPSED", "LAPSED"],
  );
});

t.test(
  "a coupon locked or redeemed at the end of its batch expires when it is given back, with one event",
  async (t) => {
    const { expire, make, must, lock, end, endLock, countCoupons } = fixture;
    const batch = await make("tpl_again", 5);
    const [cancelled, lapsed, confirmed, reversed] = batch.codes as [string, string, string, string];
    const [cancelledLock, , confirmedLock] = [await lock(cancelled), await lock(lapsed), await lock(confirmed)];
    const { redemption } = await must("/v1/coupons/redeem", { coupon: reversed, merchant });
    await end(batch);
    await expire();
    t.strictSame(await countCoupons(batch), { "LOCKED 0": 3, "REDEEMED 0": 1, "EXPIRED 1": 1 });
    await must("/v1/coupons/cancel", { coupon: cancelled, lock_request_id: cancelledLock });
    await must("/v1/coupons/confirm", { coupon: confirmed, lock_request_id: confirmedLock, merchant });
    await must("/v1/redemptions/reverse", { redemption });
    await endLock(batch.couponIds[1]!);
    await expire();
    await expire();
    t.strictSame(await countCoupons(batch), { "REDEEMED 0": 1, "EXPIRED 1": 4 });
  },
);

t.test("a coupon that is given back at the moment of its end expires too", async (t) => {
  const { service, expire, make, lock, end, countCoupons, statusOf } = fixture;
  const batch = await make("tpl_live", 2);
  const lockId = await lock(batch.codes[0]!);
  // The call reads the clock before the end and commits after it.
  const { finish, moment } = await arrangeBefore(
    service,
    async (moment) => {
      await end(batch, `'${moment}'`);
      const body = { request_id: newRequestId(), coupon: batch.codes[0]!, lock_request_id: lockId };
      return { finish: await beginRequest(service, "ak_a", "cancel", body) };
    },
    (late) => late.finish("rollback"),
  );
  await untilPast(service, moment);
  await expire();
  await finish("commit");
  t.equal(await statusOf(batch.couponIds[0]!), "ISSUED", "it was given back in time");
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 2 });
});

t.test("a coupon held by another transaction delays only the coupons after it in its batch", async (t) => {
  const { service, expire, make, countCoupons } = fixture;
  const [batch, other] = [await make("tpl_past", 20), await make("tpl_past", 5)];
  const release = await holdCoupon(service, batch.couponIds[10]!);
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 10, "ISSUED 0": 10 });
  t.strictSame(await countCoupons(other), { "EXPIRED 1": 5 });
  await release();
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 20 });
});

t.test("a step holds and expires its own numbers only, and ends before a coupon that is held", async (t) => {
  const { service, make, must, end, countCoupons } = fixture;
  const batch = await make("tpl_live", 8);
  for (const index of [2, 6]) await must("/v1/coupons/void", { coupon: batch.codes[index], merchant });
  await end(batch, "now()");
  const job = openSession(service.address, { name: "coupon test worker", role: "coupon_owner" });
  t.teardown(() => job.end());
  // At the exact end of the validity.
  const expire = async (after: number, last: number) => {
    const text = "select rules.expire_range(b, $2, $3, b.valid_to) as reached from core.batch b where external_id = $1";
    return (await job.rows<{ reached: number }>(text, [batch.id, after, last]))[0]!.reached;
  };
  t.equal(await expire(1, 2), 2);
  const releases = [await holdCoupon(service, batch.couponIds[4]!), await holdCoupon(service, batch.couponIds[5]!)];
  t.equal(await expire(2, 6), 4);
  await releases[0]!();
  t.equal(await expire(4, 6), 5);
  await releases[1]!();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 3, "ISSUED 0": 3, "VOIDED 0": 2 });
  await job.run("begin");
  // 7 is voided, and is not asked for.
  t.equal(await expire(1, 6), 6);
  const [free] = await service.owner.rows<{ numbers: number[] }>(
    `select array(select c.number from core.coupon c join core.batch b using (tenant_id, batch_id)
       where b.external_id = $1 order by c.number for update of c skip locked) as numbers`,
    [batch.id],
  );
  t.strictSame(free!.numbers, [1, 2, 3, 4, 5, 7, 8]);
  await job.run("commit");
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 4, "ISSUED 0": 2, "VOIDED 0": 2 });
});

t.test("two concurrent workers write one event per coupon", async (t) => {
  const { service, expire, make, lock, endLock, countCoupons } = fixture;
  const batches = [await make("tpl_past", 1_200), await make("tpl_past", 1_200)];
  const { codes, couponIds } = await make("tpl_live", 60);
  await Promise.all(codes.map(lock));
  await Promise.all(couponIds.map(endLock));
  await Promise.all([expire(), expire()]);
  for (const batch of batches) t.strictSame(await countCoupons(batch), { "EXPIRED 1": 1_200 });
  const lapsed = await service.owner.rows(
    "select from core.redemption where status = 'LOCKED' and lock_expires_at <= now()",
  );
  t.equal(lapsed.length, 0);
});

t.test(
  "an expiry is dated to the end of the validity or, if later, to when the coupon became free, whenever it is recorded",
  async (t) => {
    const { service, psql, expire, make, must, lock, end } = fixture;
    const batch = await make("tpl_live", 4);
    const [issued, lapsed, cancelled, lapsedBefore] = batch.couponIds as [string, string, string, string];
    for (const index of [1, 3]) await lock(batch.codes[index]!);
    const lockId = await lock(batch.codes[2]!);
    await end(batch, "clock_timestamp() - interval '1 hour'");
    for (const [coupon, age] of [
      [lapsed, "10 minutes"],
      [lapsedBefore, "2 hours"],
    ])
      await psql.rows(
        `update core.redemption set lock_expires_at = clock_timestamp() - $2::text::interval
         where coupon_id = rules.parse_id('cpn', $1)`,
        [coupon, age],
      );
    await expire();
    await must("/v1/coupons/cancel", { coupon: batch.codes[2], lock_request_id: lockId });
    const expired = await service.owner.rows<{ coupon: string; then: string }>(
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
      [issued]: "valid_to",
      [lapsedBefore]: "valid_to",
      [lapsed]: "lock",
      [cancelled]: "cancel",
    });
  },
);
