// Calls that meet in one group, as gate.perform gets it: what would have to wait for another call of the group is handed back
// (status 0), and nothing of it is written.
import t from "tap";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { makeStock, openTill, type Stock } from "../support/writers.ts";

let service: Running;
let stock: Stock;
let till: Awaited<ReturnType<typeof openTill>>;
t.before(async () => {
  service = await startService(t);
  stock = await makeStock(service, { again: 20, once: 0 });
  till = await openTill(service);
  t.teardown(() => till.session.end());
});

const merchant = "mch_a";
const nextCoupon = () => stock.again.pop()!.lookup;
const redeem = (coupon: string, more: object = {}) => ({ operation: "redeem", args: { coupon, merchant }, ...more });

// The answers in the order of the calls, as status or code.
async function answers(calls: { operation: string; args: object }[]): Promise<(number | string)[]> {
  const rows = await till.send(calls, false);
  return rows.map(({ http_status, body }) => (http_status === 200 || http_status === 0 ? http_status : (JSON.parse(body) as { code: string }).code));
}

const count = async (table: string) => (await service.owner.rows<{ count: number }>(`select count(*)::int as count from core.${table}`))[0]!.count;

t.test("the second redeem or lock of a coupon is handed back, and the others are done", async (t) => {
  const [coupon, other] = [nextCoupon(), nextCoupon()];
  const before = [await count("redemption"), await count("request")];
  t.strictSame(await answers([redeem(coupon), redeem(other), redeem(coupon), { ...redeem(coupon), operation: "lock" }]), [200, 200, 0, "COUPON_REDEEMED"]);
  t.strictSame([(await count("redemption")) - before[0]!, (await count("request")) - before[1]!], [2, 3]);
  t.strictSame(await answers([redeem(coupon)]), ["COUPON_REDEEMED"], "which is what it gets when it runs again");
});

t.test("the second of two equal requests is handed back, by its request_id or its idempotency-key", async (t) => {
  const [id, key] = [newRequestId(), newRequestId()];
  const [first, second] = [nextCoupon(), nextCoupon()];
  t.strictSame(await answers([
    redeem(first, { request_id: id }), redeem(first, { request_id: id }),
    redeem(second, { idempotency_key: key }), redeem(second, { idempotency_key: key }),
    redeem(nextCoupon(), { request_id: id }), redeem(nextCoupon(), { idempotency_key: key }),
  ]), [200, 0, 200, 0, 0, 0], "and so is one that only has the same name");
  t.strictSame(await answers([redeem(first, { request_id: id }), redeem(second, { idempotency_key: key })]), [200, 200], "and is the first one's answer when it runs again");
});

t.test("a nonce that comes twice in a group counts once", async (t) => {
  const nonce = newRequestId();
  t.strictSame(await answers([redeem(nextCoupon(), { nonce }), redeem(nextCoupon(), { nonce }), redeem(nextCoupon(), { nonce: newRequestId() })]), [200, "NONCE_REUSED", 200]);
  t.strictSame(await answers([redeem(nextCoupon(), { nonce })]), ["NONCE_REUSED"]);
});

t.test("a revoked credential, a read and an unknown merchant do not disturb the others", async (t) => {
  const coupon = nextCoupon();
  t.strictSame(await answers([
    redeem(nextCoupon(), { credential_id: 2147483647 }), { operation: "query", args: { coupon, merchant } },
    { operation: "redeem", args: { coupon: nextCoupon(), merchant: "mch_none" } }, redeem(coupon), { operation: "refuse", args: {} },
  ]), ["UNAUTHENTICATED", 200, "NOT_FOUND", 200, 0]);
});

t.test("an error undoes the whole group", async (t) => {
  const coupon = nextCoupon();
  const before = await count("request");
  await t.rejects(till.send([redeem(coupon), { operation: "no_such_operation", args: {} }], false), { code: "20000" });
  t.equal(await count("request"), before);
  t.strictSame(await answers([redeem(coupon)]), [200]);
});
