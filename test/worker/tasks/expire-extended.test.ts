// Coupons whose valid_to an administrator has patched expire at that end, whatever the end of their batch.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { startExpiryFixture, type ExpiryFixture } from "../../support/expiry-fixture.ts";
import { fits } from "../../support/fits.ts";
import { holdCoupon } from "../../support/sessions.ts";

const merchant = "mch_a";

let fixture: ExpiryFixture;
t.before(async () => {
  fixture = await startExpiryFixture(t);
});

t.test("coupons with a patched end expire at that end", async (t) => {
  const { psql, expire, make, must, lock, end, extend, countCoupons, statusOf } = fixture;
  const [batch, unreleased] = [await make("tpl_live", 5), await make("tpl_live", 1, false)];
  const [shorter, longer, locked] = batch.couponIds as [string, string, string];
  const lockId = await lock(batch.codes[2]!);
  await must("/v1/coupons/redeem", { coupon: batch.codes[3], merchant });
  for (const id of [shorter, locked, unreleased.couponIds[0]!]) await extend(id, "2021-01-01T00:00:00Z");
  await extend(longer, "2098-01-01T00:00:00Z");
  await expire();
  t.strictSame(
    await countCoupons(batch),
    { "EXPIRED 1": 1, "ISSUED 0": 2, "LOCKED 0": 1, "REDEEMED 0": 1 },
    "the batch is valid, one of its coupons is not",
  );
  const listed = () => psql.rows("select from core.coupon_extension x where x.valid_to < now()");
  t.equal((await listed()).length, 2, "the locked one and that of the other batch stay in the list");
  await must("/v1/coupons/cancel", { coupon: batch.codes[2], lock_request_id: lockId });
  await end(batch, "case when c.number = 2 then c.valid_to else clock_timestamp() end");
  await psql.rows("update core.batch set valid_to = clock_timestamp() where external_id = $1", [batch.id]);
  await expire();
  t.strictSame(
    await countCoupons(batch),
    { "EXPIRED 1": 3, "ISSUED 0": 1, "REDEEMED 0": 1 },
    "the batch has ended, one of its coupons is still valid",
  );
  t.equal((await listed()).length, 1, "a lock has ended");
  t.equal(await statusOf(longer), "ISSUED");
  await extend(longer, "2021-01-01T00:00:00Z");
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 4, "REDEEMED 0": 1 });

  t.strictSame(await countCoupons(unreleased), { "ISSUED 0": 1 });
  await must("/v1/batches/allocate", { batch: unreleased.id });
  await expire();
  t.strictSame(await countCoupons(unreleased), { "EXPIRED 1": 1 });
});

t.test("a coupon with a patched end that cannot expire delays no other, and expires once it is repaired", async (t) => {
  const { psql, expire, make, lock, extend, statusOf } = fixture;
  const { codes, couponIds } = await make("tpl_live", 2);
  const [wrong, right] = couponIds as [string, string];
  await lock(codes[0]!);
  const set = (status: string) =>
    psql.rows("update core.coupon set status = $1 where coupon_id = rules.parse_id('cpn', $2)", [status, wrong]);
  await extend(wrong, "2021-01-01T00:00:00Z");
  await extend(right, "2021-01-02T00:00:00Z");
  await set("ISSUED");
  await expire();
  t.strictSame([await statusOf(wrong), await statusOf(right)], ["ISSUED", "EXPIRED"]);
  fits(t, await psql.rows("select work, party, subject, reason from report.stuck_work"), [
    { work: "expiry", party: "pty_a", subject: wrong, reason: /is EXPIRED, but its live redemption is LOCKED/ },
  ]);
  await psql.run("update core.stuck_work set tried_at = tried_at - interval '61 seconds'");
  await psql.run("update core.redemption set status = 'CANCELLED', ended_at = now() where status = 'LOCKED'");
  await expire();
  t.equal(await statusOf(wrong), "EXPIRED");
});

t.test("a coupon that is freed after the expiry job has passed it expires alone", async (t) => {
  const { service, psql, expire, make, must, lock, end, countCoupons } = fixture;
  const batch = await make("tpl_again", 2);
  const { redemption } = await must("/v1/coupons/redeem", { coupon: batch.codes[0], merchant });
  await lock(batch.codes[1]!);
  await end(batch);
  await expire();
  t.strictSame(await countCoupons(batch), { "REDEEMED 0": 1, "LOCKED 0": 1 });
  // A reversal after the clock was set back.
  const id = (index: number) => `rules.parse_id('cpn', '${batch.couponIds[index]}')`;
  await psql.run(`update core.coupon set valid_to = '2099-01-01' where coupon_id = ${id(0)}`);
  await must("/v1/redemptions/reverse", { redemption });
  // psql gives up a lock.
  const owner = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
  t.teardown(() => owner.end());
  await owner.run(`
    begin;
    update core.redemption set status = 'CANCELLED', ended_at = now() where status = 'LOCKED' and coupon_id = ${id(1)};
    update core.coupon set status = 'ISSUED' where coupon_id = ${id(1)};
    commit`);
  t.strictSame(await countCoupons(batch), { "ISSUED 0": 2 });
  await expire();
  t.strictSame(await countCoupons(batch), { "ISSUED 0": 1, "EXPIRED 1": 1 });
  await psql.run(`
    update core.coupon set valid_to = now() where coupon_id = ${id(0)};
    update core.coupon_extension set valid_to = now() where coupon_id = ${id(0)}`);
  await expire();
  t.strictSame(await countCoupons(batch), { "EXPIRED 1": 2 });
});

t.test("a step takes those that ended first, at most its limit, and leaves out one that is held", async (t) => {
  const { service, worker, make, extend, statusOf } = fixture;
  const { couponIds } = await make("tpl_live", 4);
  for (const [index, year] of [2024, 2021, 2022, 2023].entries())
    await extend(couponIds[index]!, `${year}-01-01T00:00:00Z`);
  const step = async () => (await worker.rows<{ done: number }>("select jobs.expire_coupons(2) as done"))[0]!.done;
  const statuses = () => Promise.all(couponIds.map(statusOf));
  const release = await holdCoupon(service, couponIds[2]!);
  t.equal(await step(), 2);
  t.strictSame(await statuses(), ["ISSUED", "EXPIRED", "ISSUED", "EXPIRED"]);
  t.equal(await step(), 1);
  t.strictSame(await statuses(), ["EXPIRED", "EXPIRED", "ISSUED", "EXPIRED"]);
  await release();
  t.strictSame([await step(), await step()], [1, 0]);
  t.strictSame(await statuses(), ["EXPIRED", "EXPIRED", "EXPIRED", "EXPIRED"]);
});
