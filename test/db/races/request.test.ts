// Concurrent requests with the same ID, key or nonce, and concurrent calls for one batch.
import t, { type Test } from "tap";
import { sendPatiently } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { countOutcomes, sendInTurn, sendTogether, untilBlocked } from "../../support/race.ts";
import { allAgree, type Coupon, merchant, startRaceFixture, type RaceFixture } from "../../support/race-fixture.ts";
import { isReplay } from "../../support/replays.ts";
import { newRequestId } from "../../support/service.ts";
import { beginRequest, holdCoupon } from "../../support/sessions.ts";
import { openSession } from "../../../src/database/connect.ts";

let fixture: RaceFixture;
t.before(async () => {
  fixture = await startRaceFixture(t);
});

function race(name: string, run: (t: Test) => Promise<void>): void {
  t.test(name, async (t) => {
    await run(t);
    await allAgree(t, fixture);
  });
}

// A psql session that locks a row that the calls refer to or change.
async function holdRow(table: string, externalId: string): Promise<() => Promise<void>> {
  const session = openSession(fixture.service.address, { name: "coupon test", role: "coupon_owner" });
  await session.run("begin");
  await session.rows(`select from core.${table} where external_id = $1 for update`, [externalId]);
  return async () => {
    await session.run("rollback");
    await session.end();
  };
}

race("50 equal requests at once run once and get 50 equal answers", async (t) => {
  const [coupon] = await fixture.makeCoupons(1);
  const { code, id } = coupon!;
  const body = { request_id: newRequestId(), coupon: code, merchant };
  const answers = await sendTogether(
    fixture.service,
    await holdCoupon(fixture.service, id),
    Array.from({ length: 50 }, () => () => fixture.a.post("/v1/coupons/redeem", body)),
  );
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
  t.strictSame(countOutcomes(answers), { 200: 50 });
  t.equal(answers.filter((answer) => !isReplay(answer)).length, 1);
  fits(t, await readCouponHistory(fixture.service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
    amounts: [500],
    events: [{ type: "coupon.redeemed" }],
  });
});

race("50 requests at once with the same idempotency-key run once, whatever their request_id", async (t) => {
  const [coupon] = await fixture.makeCoupons(1);
  const { code, id } = coupon!;
  const idempotencyKey = newRequestId();
  const one = () =>
    fixture.a.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon: code, merchant }, { idempotencyKey });
  const answers = await sendTogether(
    fixture.service,
    await holdCoupon(fixture.service, id),
    Array.from({ length: 50 }, () => one),
  );
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
  t.equal(answers.filter((answer) => answer.status === 200 && !isReplay(answer)).length, 1);
  fits(t, await readCouponHistory(fixture.service.owner, id), { redemptions: ["REDEEMED"], amounts: [500] });
});

race("After a lock and its cancel the coupon is free, whichever comes first", async (t) => {
  const [first, second] = await fixture.makeCoupons(2);
  const callsOn = (coupon: string) => {
    const request_id = newRequestId();
    return {
      lock: () => fixture.a.post("/v1/coupons/lock", { request_id, coupon, merchant }),
      cancel: () =>
        fixture.a.post("/v1/coupons/cancel", { request_id: newRequestId(), coupon, lock_request_id: request_id }),
    };
  };
  const inTurn = callsOn(first!.code);
  const [locked, cancelled] = await sendInTurn(fixture.service, first!.id, [inTurn.lock, inTurn.cancel]);
  t.strictSame([locked!.status, cancelled!.status], [200, 200]);
  fits(t, await readCouponHistory(fixture.service.owner, first!.id), { status: "ISSUED", redemptions: ["CANCELLED"] });

  const overtaken = callsOn(second!.code);
  const [early, late] = await sendInTurn(fixture.service, second!.id, [overtaken.cancel, overtaken.lock]);
  fits(t, early, { status: 409, json: { code: "LOCK_NOT_FOUND" } });
  fits(t, late, { status: 409, json: { code: "LOCK_CANCELLED" } });
  fits(t, await readCouponHistory(fixture.service.owner, second!.id), { status: "ISSUED", redemptions: [] });
});

race("Two requests with request_id and idempotency-key swapped do not deadlock", async (t) => {
  const [held, one, other] = await fixture.makeCoupons(3);
  const [low, high] = [newRequestId(), newRequestId()].sort() as [string, string];
  // With the lower ID held, both calls wait for it. If each call locked its request_id first, the second call would now
  // hold the higher ID and the two would deadlock.
  const end = await beginRequest(fixture.service, "ak_a", "redeem", { request_id: low, coupon: held!.code, merchant });
  const redeem = ({ code: coupon }: Coupon, request_id: string, idempotencyKey: string) =>
    sendPatiently(() => fixture.a.post("/v1/coupons/redeem", { request_id, coupon, merchant }, { idempotencyKey }));
  const answers = [redeem(one!, low, high)];
  const bothWait = async () => {
    await untilBlocked(fixture.service, 1);
    answers.push(redeem(other!, high, low));
    await untilBlocked(fixture.service, 2);
  };
  await bothWait().finally(() => end("rollback"));
  t.strictSame(countOutcomes(await Promise.all(answers)), { 200: 2 });
});

race("A name is claimed whether it sorts before or after the other name of its call", async (t) => {
  for (const isRequestId of [true, false]) {
    const [low, shared, high] = [newRequestId(), newRequestId(), newRequestId()].sort() as [string, string, string];
    const [held, other] = (await fixture.makeCoupons(2)) as [Coupon, Coupon];
    const redeem = (coupon: Coupon, name: string) => () =>
      fixture.a.post(
        "/v1/coupons/redeem",
        { request_id: isRequestId ? shared : name, coupon: coupon.code, merchant },
        { idempotencyKey: isRequestId ? name : shared },
      );
    const calls = [redeem(held, high), redeem(other, low)];
    const [first, second] = await sendInTurn(fixture.service, held.id, calls);
    t.equal(first!.status, 200);
    fits(t, second, { status: 422, json: { code: "IDEMPOTENCY_KEY_REUSED" } });
    fits(t, await readCouponHistory(fixture.service.owner, other.id), { status: "ISSUED", redemptions: [] });
  }
});

race("A batch create sent 20 times at once makes one batch", async (t) => {
  const body = { request_id: newRequestId(), template: "tpl_percent", total_count: 3 };
  const answers = await sendTogether(
    fixture.service,
    await holdRow("template", "tpl_percent"),
    Array.from({ length: 20 }, () => () => fixture.a.post("/v1/batches", body)),
  );
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
  t.strictSame(countOutcomes(answers), { 200: 20 });
  t.equal(answers.filter((answer) => !isReplay(answer)).length, 1);
  const made = await fixture.service.owner.rows("select external_id from core.batch where request_id = $1", [
    body.request_id,
  ]);
  t.strictSame([...made], [{ external_id: answers[0]!.json.batch.external_id }]);
});

race("Of 20 allocates of one batch exactly one succeeds, and the distributor gets one event", async (t) => {
  const { id } = await fixture.service.makeBatch(fixture.a, "tpl_fixed", 2, { isReleased: false });
  const allocate = () => fixture.a.post("/v1/batches/allocate", { request_id: newRequestId(), batch: id });
  const answers = await sendTogether(
    fixture.service,
    await holdRow("batch", id),
    Array.from({ length: 20 }, () => allocate),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, BATCH_ALREADY_ALLOCATED: 19 });
  const events = await fixture.service.owner.rows(
    "select event_type from report.event where batch = $1 order by event_seq",
    [id],
  );
  t.strictSame([...events], [{ event_type: "batch.generated" }, { event_type: "allocation.completed" }]);
});

race("Of 20 requests with the same nonce exactly one is accepted", async (t) => {
  const coupons = await fixture.makeCoupons(20);
  const nonce = newRequestId().padEnd(16, "x");
  const answers = await Promise.all(
    coupons.map(({ code }) =>
      fixture.a.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon: code, merchant }, { nonce }),
    ),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, NONCE_REUSED: 19 });
});
