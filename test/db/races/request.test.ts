// Concurrent requests with the same ID or key, and concurrent calls for one batch.
import t, { type Test } from "tap";
import type { Coupon } from "../../support/caller.ts";
import { isReplay, sendPatiently, type Reply } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { countOutcomes, sendInTurn, sendTogether, untilBlocked } from "../../support/race.ts";
import { newRequestId } from "../../support/request-id.ts";
import { scenario } from "../../support/scenario.ts";
import { beginRequest, holdCoupon } from "../../support/sessions.ts";

const world = await scenario(t);
const { till } = world.a;

const makeCoupons = async (count: number) => (await world.a.makeCoupons(count)) as [Coupon, Coupon, Coupon];
const bodyOf = ({ code }: Coupon, request_id = newRequestId()) => ({ request_id, coupon: code, merchant: "mch_a" });
const redeem = (body: object, idempotencyKey?: string) =>
  till.post("/v1/coupons/redeem", body, idempotencyKey === undefined ? {} : { idempotencyKey });
const repeat = (count: number, call: () => Promise<Reply>) => Array.from({ length: count }, () => call);

/** All answers are equal, and all but one are replays. */
function checkOneRun(t: Test, answers: Reply[]): void {
  t.equal(new Set(answers.map(({ text }) => text)).size, 1);
  t.strictSame(countOutcomes(answers), { 200: answers.length });
  t.equal(answers.filter((answer) => !isReplay(answer)).length, 1);
}

t.test("50 equal requests at once run once and get 50 equal answers", async (t) => {
  const [coupon, other] = await makeCoupons(2);
  const body = bodyOf(coupon);
  const equal = repeat(50, () => redeem(body));
  checkOneRun(t, await sendTogether(world, await holdCoupon(world, coupon.id), equal));
  const key = newRequestId();
  const byKey = repeat(50, () => redeem(bodyOf(other), key));
  checkOneRun(t, await sendTogether(world, await holdCoupon(world, other.id), byKey));
  for (const { id } of [coupon, other])
    fits(t, await readCouponHistory(world.owner, id), { redemptions: ["REDEEMED"], amounts: [500] });
});

t.test("A repeated request waits for the first one, for at most 2 s", async (t) => {
  const [first, second, third] = (await makeCoupons(3)).map((coupon) => bodyOf(coupon));
  const begin = (body: typeof first) => beginRequest(world, "ak_a", "redeem", body!);
  // The answer to the second request, which waited for the first one. A busy machine may let it wait for too long.
  const answerAfter = async (body: typeof first, how: "commit" | "rollback") => {
    const end = await begin(body);
    const answer = sendPatiently(() => redeem(body!));
    await untilBlocked(world, 1).finally(() => end(how));
    return answer;
  };
  const replayed = { status: 200, headers: { "idempotent-replayed": "true" } };
  fits(t, await answerAfter(first, "commit"), replayed, "the answer of the first");
  const performed = await answerAfter(second, "rollback");
  t.ok(performed.status === 200 && !isReplay(performed), "the first was rolled back, so the second runs");
  const end = await begin(third);
  const refused = await sendPatiently(() => redeem(third!), ["UNAVAILABLE"]);
  fits(t, refused, { status: 409, json: { code: "REQUEST_IN_PROGRESS" } });
  // Only now: the answer came while the first request was still running.
  await end("commit");
  fits(t, await redeem(third!), replayed, "REQUEST_IN_PROGRESS is not recorded, so a retry gets the answer");
});

t.test("A lock that arrives after its cancel is refused, and the coupon stays free", async (t) => {
  const [coupon] = await makeCoupons(1);
  coupon.lockRequestId = newRequestId();
  const lock = () => till.lock(coupon, { request_id: coupon.lockRequestId });
  const [early, late] = await sendInTurn(world, coupon.id, [() => till.cancel(coupon), lock]);
  fits(t, early, { status: 409, json: { code: "LOCK_NOT_FOUND" } });
  fits(t, late, { status: 409, json: { code: "LOCK_CANCELLED" } });
  fits(t, await readCouponHistory(world.owner, coupon.id), { status: "ISSUED", redemptions: [] });
});

t.test("Two requests with request_id and idempotency-key swapped do not deadlock", async (t) => {
  const [held, one, other] = await makeCoupons(3);
  const [low, high] = [newRequestId(), newRequestId()].sort() as [string, string];
  // With the lower ID held, both calls wait for it. If each call locked its request_id first, the second call would now
  // hold the higher ID and the two would deadlock.
  const end = await beginRequest(world, "ak_a", "redeem", bodyOf(held, low));
  const answers = [sendPatiently(() => redeem(bodyOf(one, low), high))];
  const bothWait = async () => {
    await untilBlocked(world, 1);
    answers.push(sendPatiently(() => redeem(bodyOf(other, high), low)));
    await untilBlocked(world, 2);
  };
  await bothWait().finally(() => end("rollback"));
  t.strictSame(countOutcomes(await Promise.all(answers)), { 200: 2 });
});

t.test("A name is claimed whether it sorts before or after the other name of its call", async (t) => {
  for (const isRequestId of [true, false]) {
    const [low, shared, high] = [newRequestId(), newRequestId(), newRequestId()].sort() as [string, string, string];
    const [held, other] = await makeCoupons(2);
    const call = (coupon: Coupon, name: string) => () =>
      isRequestId ? redeem(bodyOf(coupon, shared), name) : redeem(bodyOf(coupon, name), shared);
    const [first, second] = await sendInTurn(world, held.id, [call(held, high), call(other, low)]);
    t.equal(first!.status, 200);
    fits(t, second, { status: 422, json: { code: "IDEMPOTENCY_KEY_REUSED" } });
    fits(t, await readCouponHistory(world.owner, other.id), { status: "ISSUED", redemptions: [] });
  }
});

t.test("Of 20 allocates of one batch exactly one succeeds, and the distributor gets one event", async (t) => {
  const { id } = await world.makeBatch(till, "tpl_fixed", 2, { isReleased: false });
  const session = await world.openPsql();
  await session.run("begin");
  await session.rows("select from core.batch where external_id = $1 for update", [id]);
  const allocates = repeat(20, () => till.allocateBatch(id));
  const answers = await sendTogether(world, () => session.run("rollback"), allocates);
  t.strictSame(countOutcomes(answers), { 200: 1, BATCH_ALREADY_ALLOCATED: 19 });
  const events = await world.owner.rows("select event_type from report.event where batch = $1 order by 1", [id]);
  t.strictSame([...events], [{ event_type: "allocation.completed" }, { event_type: "batch.generated" }]);
});
