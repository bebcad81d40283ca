// A suspension and the redemptions of other sessions: whatever has read the batch before, the suspension commits after
// it. From its commit on, every lock and redeem is refused.
import { randomUUID } from "node:crypto";
import t, { type Test } from "tap";
import { lookupHash } from "../../../src/crypto/coupon-code.ts";
import type { Coupon } from "../../support/caller.ts";
import { fits } from "../../support/fits.ts";
import { findBatch } from "../../support/minting.ts";
import { untilBlocked } from "../../support/race.ts";
import { scenario } from "../../support/scenario.ts";
import { openGateSession } from "../../support/sessions.ts";
import { openWorkerSession } from "../../support/worker-session.ts";

const world = await scenario(t);
const { maker, till, template } = world.a;

const makeBatch = () => world.makeBatch(maker, template, 4);
const codeOf = (body: string | null): string | null => (body === null ? null : JSON.parse(body).code);

/** A group of redeems, in a transaction of the test. */
async function openTill(t: Test) {
  const { session, send } = await openGateSession(world, "ak_a");
  t.teardown(() => session.end());
  await session.run("set lock_timeout = '20s'");
  const args = (code: string) => ({ coupon: lookupHash(world.keys, code), merchant: "mch_a" });
  const act = (operation: string, codes: string[], mayWait = false) =>
    send(
      codes.map((code) => ({ operation, args: args(code) })),
      mayWait,
    );
  return { session, act };
}

for (const operation of ["lock", "redeem"] as const)
  for (const stop of ["suspendBatch", "recallBatch"] as const)
    t.test(`${stop} waits for a ${operation} that has read the batch and not yet committed`, async (t) => {
      const { id, coupons } = await makeBatch();
      const [first, second] = coupons.map(({ code }) => code) as [string, string];
      const [early, late] = [await openTill(t), await openTill(t)];
      await early.session.run("begin");
      fits(t, await early.act(operation, [first]), [{ http_status: 200 }]);
      const stopping = maker.ok[stop](id);
      await untilBlocked(world, 1);
      t.strictSame((await maker.get(`/v1/batches/${id}`)).json.batch.suspended_at, null, "it is not yet answered");

      // Those that come now do not overtake it: a group hands them back, and a call that may wait is refused.
      fits(t, await late.act(operation, [second]), [{ http_status: null }]);
      const waiting = late.act(operation, [second], true);
      await untilBlocked(world, 2);
      await early.session.run("commit");
      fits(t, await stopping, { batch: { suspended_at: /Z$/ } });
      t.strictSame(
        (await waiting).map(({ body }) => codeOf(body)),
        ["BATCH_SUSPENDED"],
      );
    });

t.test("A lock that waits for its coupon's row meanwhile is refused, and delays no suspension", async (t) => {
  const { id, coupons } = await makeBatch();
  const psql = await world.openPsql();
  await psql.run("begin");
  await psql.rows("select from core.coupon where coupon_id = rules.parse_id('cpn', $1) for update", [coupons[0]!.id]);
  const answer = till.lock(coupons[0]!);
  await untilBlocked(world, 1);
  await maker.ok.suspendBatch(id);
  await psql.run("commit");
  fits(t, await answer, { status: 409, json: { code: "BATCH_SUSPENDED" } });
});

t.test("A suspension keeps no other tenant from redeeming", async (t) => {
  const { id, coupons } = await makeBatch();
  const [other] = await world.b.makeCoupons(1);
  const early = await openTill(t);
  await early.session.run("begin");
  await early.act("redeem", [coupons[0]!.code]);
  const stopping = maker.ok.suspendBatch(id);
  await untilBlocked(world, 1);
  await world.b.till.ok.redeem(other!);
  await early.session.run("commit");
  await stopping;
});

for (const operation of ["cancel", "reverse"] as const)
  t.test(
    `A recall does not pass a coupon whose ${operation} has read the batch before and not yet committed`,
    async (t) => {
      const state = operation === "cancel" ? "LOCKED by this lock" : "REDEEMED, reissuable";
      const [coupon, ...others] = (await world.a.makeCoupons(4, state)) as [Coupon, ...Coupon[]];
      for (const other of others) await till.ok[operation](other);
      const { coupon: shown } = await till.ok.query(coupon);
      const early = await openGateSession(world, "ak_a");
      t.teardown(() => early.session.end());
      await early.session.run("begin");
      const { lockRequestId: lock_request_id, redemption } = coupon;
      const args =
        operation === "cancel" ? { coupon: lookupHash(world.keys, coupon.code), lock_request_id } : { redemption };
      fits(t, await early.send([{ operation, args }], false), [{ http_status: 200 }]);
      await maker.ok.recallBatch(shown.batch_id);
      const { number } = await openWorkerSession(t, world.address);
      const { tenant_id, batch_id } = await findBatch(world, shown.batch_id);
      const lease = [tenant_id, batch_id, randomUUID()];
      await world.worker.rows("select jobs.lease_recall($1, $2, $4, $3)", [...lease, number]);
      const step = () => world.worker.rows("select is_over, is_held_up from jobs.recall_chunk($1, $2, $3, 9)", lease);
      const readRecall = async () => (await maker.get(`/v1/batches/${shown.batch_id}`)).json.batch.recall;
      t.strictSame([...(await step())], [{ is_over: false, is_held_up: true }]);
      await early.session.run("commit");
      fits(t, (await till.ok.query(coupon)).coupon, { status: "ISSUED" });
      t.strictSame([...(await step())], [{ is_over: false, is_held_up: false }]);
      fits(t, await readRecall(), { voided_count: 4, finished_at: null });
    },
  );
