// Requests that meet under one name, and batches that many want at once.
import t, { type Test } from "tap";
import type { Client } from "../../support/client.ts";
import { findBrokenInvariants, readCouponHistory } from "../../support/inspect.ts";
import { countOutcomes, sendTogether, sendInTurn, untilBlocked } from "../../support/race.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { beginRequest, holdCoupon } from "../../support/sessions.ts";
import { openSession } from "../../../src/database/connect.ts";

const merchant = "mch_a";
let service: Running;
let a: Client;
t.before(async () => {
  service = await startService(t);
  a = service.as("ak_a");
});

// A test that ends with a look at everything: whoever won, coupons, redemptions, ledger and events agree.
function race(name: string, run: (t: Test) => Promise<void>): void {
  t.test(name, async (t) => {
    await run(t);
    t.strictSame(await findBrokenInvariants(service.owner), []);
  });
}

async function makeCoupons(count: number): Promise<{ code: string; id: string }[]> {
  const { codes, couponIds } = await service.makeBatch(a, "tpl_fixed", count);
  return codes.map((code, index) => ({ code, id: couponIds[index]! }));
}
const isReplay = ({ headers }: { headers: Record<string, unknown> }) => headers["idempotent-replayed"] === "true";

// Somebody in psql who has a row that new rows refer to, or that is to be changed.
async function holdRow(table: string, externalId: string): Promise<() => Promise<void>> {
  const session = openSession(service.address, { name: "coupon test", role: "coupon_owner" });
  await session.run("begin");
  await session.rows(`select from core.${table} where external_id = $1 for update`, [externalId]);
  return async () => {
    await session.run("rollback");
    await session.end();
  };
}

race("50 equal requests at once are one execution and 50 equal answers", async (t) => {
  const [coupon] = await makeCoupons(1);
  const { code, id } = coupon!;
  const body = { request_id: newRequestId(), coupon: code, merchant };
  const answers = await sendTogether(
    service,
    await holdCoupon(service, id),
    Array.from({ length: 50 }, () => () => a.post("/v1/coupons/redeem", body)),
  );
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
  t.strictSame(countOutcomes(answers), { 200: 50 });
  t.equal(answers.filter((answer) => !isReplay(answer)).length, 1);
  t.match(await readCouponHistory(service.owner, id), {
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
    amounts: [500],
    events: [{ type: "coupon.redeemed" }],
  });
});

race("50 requests at once that share an idempotency-key only are one execution too", async (t) => {
  const [coupon] = await makeCoupons(1);
  const { code, id } = coupon!;
  const idempotencyKey = newRequestId();
  const one = () =>
    a.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon: code, merchant }, { idempotencyKey });
  const answers = await sendTogether(
    service,
    await holdCoupon(service, id),
    Array.from({ length: 50 }, () => one),
  );
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
  t.equal(answers.filter((answer) => answer.status === 200 && !isReplay(answer)).length, 1);
  t.match(await readCouponHistory(service.owner, id), { redemptions: ["REDEEMED"], amounts: [500] });
});

race("a lock and its cancel meet: whichever comes first, the coupon is free afterwards", async (t) => {
  const [first, second] = await makeCoupons(2);
  const callsOn = (coupon: string) => {
    const request_id = newRequestId();
    return {
      lock: () => a.post("/v1/coupons/lock", { request_id, coupon, merchant }),
      cancel: () => a.post("/v1/coupons/cancel", { request_id: newRequestId(), coupon, lock_request_id: request_id }),
    };
  };
  const inTurn = callsOn(first!.code);
  const [locked, cancelled] = await sendInTurn(service, first!.id, [inTurn.lock, inTurn.cancel]);
  t.strictSame([locked!.status, cancelled!.status], [200, 200]);
  t.match(await readCouponHistory(service.owner, first!.id), { status: "ISSUED", redemptions: ["CANCELLED"] });

  const overtaken = callsOn(second!.code);
  const [early, late] = await sendInTurn(service, second!.id, [overtaken.cancel, overtaken.lock]);
  t.match(early, { status: 409, json: { code: "LOCK_NOT_FOUND" } });
  t.match(late, { status: 409, json: { code: "LOCK_CANCELLED" } });
  t.match(await readCouponHistory(service.owner, second!.id), { status: "ISSUED", redemptions: [] });
});

race("two requests that cross request_id and idempotency-key do not wait for each other", async (t) => {
  const [held, one, other] = await makeCoupons(3);
  const [low, high] = [newRequestId(), newRequestId()].sort() as [string, string];
  // Whoever takes the two names in the order given, and not in one order, has one of them now and waits for the
  // other: with the lower held, the second call would sit on the higher.
  const end = await beginRequest(service, "ak_a", "redeem", { request_id: low, coupon: held!.code, merchant });
  const answers = [
    a.post("/v1/coupons/redeem", { request_id: low, coupon: one!.code, merchant }, { idempotencyKey: high }),
  ];
  const bothWait = async () => {
    await untilBlocked(service, 1);
    answers.push(
      a.post("/v1/coupons/redeem", { request_id: high, coupon: other!.code, merchant }, { idempotencyKey: low }),
    );
    await untilBlocked(service, 2);
  };
  await bothWait().finally(() => end("rollback"));
  t.strictSame(countOutcomes(await Promise.all(answers)), { 200: 2 });
});

race("a batch create that is sent 20 times at once makes one batch", async (t) => {
  const body = { request_id: newRequestId(), template: "tpl_percent", total_count: 3 };
  const answers = await sendTogether(
    service,
    await holdRow("template", "tpl_percent"),
    Array.from({ length: 20 }, () => () => a.post("/v1/batches", body)),
  );
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
  t.strictSame(countOutcomes(answers), { 200: 20 });
  t.equal(answers.filter((answer) => !isReplay(answer)).length, 1);
  const made = await service.owner.rows("select external_id from core.batch where request_id = $1", [body.request_id]);
  t.strictSame([...made], [{ external_id: answers[0]!.json.batch.external_id }]);
});

race("of 20 allocates of one batch exactly one succeeds, and the distributor is told once", async (t) => {
  const { id } = await service.makeBatch(a, "tpl_fixed", 2, { isReleased: false });
  const allocate = () => a.post("/v1/batches/allocate", { request_id: newRequestId(), batch: id });
  const answers = await sendTogether(
    service,
    await holdRow("batch", id),
    Array.from({ length: 20 }, () => allocate),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, BATCH_ALREADY_ALLOCATED: 19 });
  const told = await service.owner.rows("select event_type from report.event where batch = $1 order by event_seq", [
    id,
  ]);
  t.strictSame([...told], [{ event_type: "batch.generated" }, { event_type: "allocation.completed" }]);
});

race("a nonce that 20 requests bring at once lets one of them in", async (t) => {
  const coupons = await makeCoupons(20);
  const nonce = newRequestId().padEnd(16, "x");
  const answers = await Promise.all(
    coupons.map(({ code }) =>
      a.post("/v1/coupons/redeem", { request_id: newRequestId(), coupon: code, merchant }, { nonce }),
    ),
  );
  t.strictSame(countOutcomes(answers), { 200: 1, NONCE_REUSED: 19 });
});
