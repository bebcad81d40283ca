// What npm run demo prints, in the form that readSteps gives it: generated IDs are numbered in the order in which they
// first occur, times are "TIME", and masked codes "CODE".
import type { Variant } from "./demo-variants.ts";

export type Step = { title: string; operation: string; input: object; answer: object | string; isReplay?: true };

/** The steps of one variant. */
export const listSteps = (variant: Variant): Step[] => [
  ...makeCoupons(variant),
  ...lockAndConfirm(variant),
  ...redeemAndVoid(variant),
];

const coupon = "CODE";
const id = (number: number) => ({ request_id: `request_${number}` });
const orderOf = ({ merchant, store, terminal }: Variant) => ({
  coupon,
  merchant,
  store,
  terminal,
  order_amount: 64.5,
  currency: "EUR",
  order_id: "4711",
});
const lockedOf = ({ discount }: Variant, redemption: string) => ({
  ok: true,
  redemption,
  discount_amount: discount,
  lock_expires_at: "TIME",
});
const look = (
  { merchant, showCoupon }: Variant,
  title: string,
  found: { coupon_id: string; status: string; redemption?: object },
): Step => ({
  title,
  operation: "query",
  input: { coupon, merchant },
  answer: { ok: true, coupon: showCoupon(found) },
});

function makeCoupons(variant: Variant): Step[] {
  const { template } = variant;
  const order = orderOf(variant);
  const batch = (status: string, minted_count: number) => ({
    ok: true,
    batch: {
      external_id: "bat_1",
      status,
      total_count: 3,
      minted_count,
      maker_party_id: variant.makerParty,
      distributor_party_id: variant.distributorParty,
      template_id: template,
      created_at: "TIME",
    },
  });
  return [
    {
      title: "Submit a batch",
      operation: "createBatch",
      input: { ...id(1), template, total_count: 3 },
      answer: batch("PENDING", 0),
    },
    {
      title: "Wait until it is minted",
      operation: "getBatch",
      input: { batch: "bat_1" },
      answer: batch("COMPLETED", 3),
    },
    {
      title: "Hand over the codes (npm run codes -- bat_1 --unreleased)",
      operation: "CODE, CODE, CODE",
      input: {},
      answer: "",
    },
    {
      title: "Redeem before the batch is released: refused",
      operation: "redeem",
      input: { ...id(2), ...order },
      answer: "redeem: COUPON_NOT_RELEASED (409): The coupon's batch is not released yet.",
    },
    {
      title: "Release the batch to its distributor",
      operation: "allocateBatch",
      input: { ...id(3), batch: "bat_1" },
      answer: batch("ALLOCATED", 3),
    },
  ];
}

function lockAndConfirm(variant: Variant): Step[] {
  const { merchant } = variant;
  const order = orderOf(variant);
  const confirmed = { ok: true, redemption: "red_1", status: "REDEEMED" };
  return [
    look(variant, "Look at the first coupon", { coupon_id: "cpn_1", status: "ISSUED" }),
    {
      title: "Lock it: the service computes the discount",
      operation: "lock",
      input: { ...id(4), ...order },
      answer: lockedOf(variant, "red_1"),
    },
    {
      title: "Send the same lock again: the first answer is repeated",
      operation: "lock",
      input: { ...id(4), ...order },
      answer: lockedOf(variant, "red_1"),
      isReplay: true,
    },
    {
      title: "Lock it from another till: refused",
      operation: "lock",
      input: { ...id(5), ...order },
      answer: "lock: COUPON_LOCKED (409): The coupon is locked by another request.",
    },
    {
      title: "Confirm the lock",
      operation: "confirm",
      input: { ...id(6), lock_request_id: "request_4", coupon, merchant },
      answer: confirmed,
    },
    {
      title: "Lock it once more: refused",
      operation: "lock",
      input: { ...id(7), ...order },
      answer: "lock: COUPON_REDEEMED (409): The coupon is already redeemed.",
    },
    {
      title: "Ask for the outcome of the confirm, as after a lost answer",
      operation: "getRequest",
      input: id(6),
      answer: {
        ok: true,
        request: { ...id(6), operation: "confirm", http_status: 200, response: confirmed, recorded_at: "TIME" },
      },
    },
    {
      title: "Reverse the redemption",
      operation: "reverse",
      input: { ...id(8), redemption: "red_1", reason: "goods returned" },
      answer: { ok: true, redemption: "red_1", reversal: "rvs_1", status: "REVERSED" },
    },
    look(variant, "Look at the coupon again", { coupon_id: "cpn_1", ...variant.reversed }),
  ];
}

function redeemAndVoid(variant: Variant): Step[] {
  const { merchant, discount } = variant;
  const order = orderOf(variant);
  return [
    {
      title: "Redeem the second coupon in one step",
      operation: "redeem",
      input: { ...id(9), ...order },
      answer: { ok: true, redemption: "red_2", discount_amount: discount },
    },
    {
      title: "Reuse that request_id with another amount: refused",
      operation: "redeem",
      input: { ...id(9), ...order, order_amount: 99 },
      answer:
        "redeem: IDEMPOTENCY_KEY_REUSED (422): This request_id or idempotency-key was used for a different request.",
    },
    {
      title: "Lock the third coupon",
      operation: "lock",
      input: { ...id(10), ...order },
      answer: lockedOf(variant, "red_3"),
    },
    {
      title: "Cancel that lock",
      operation: "cancel",
      input: { ...id(11), lock_request_id: "request_10", coupon },
      answer: { ok: true, redemption: "red_3", status: "CANCELLED" },
    },
    {
      title: "Void the coupon",
      operation: "void",
      input: { ...id(12), coupon, merchant, reason: "printed twice" },
      answer: { ok: true, coupon_id: "cpn_2", status: "VOIDED" },
    },
    look(variant, "Look at it", { coupon_id: "cpn_2", status: "VOIDED" }),
  ];
}

/** Reads what the demo printed about one variant, after its heading. */
export function readSteps(text: string): Step[] {
  return numberIds(text)
    .trim()
    .split("\n\n")
    .map((block) => {
      const [title = "", call = "", result = ""] = block.split("\n").map((line) => line.trim());
      const [, operation = call, input = "{}"] = /^(\w+) (\{.*)$/.exec(call) ?? [];
      const [, mark, body] = /^200 (\(Idempotent-Replayed\) )?(\{.*)$/.exec(result) ?? [];
      return {
        title,
        operation,
        input: JSON.parse(input) as object,
        answer: body === undefined ? result : (JSON.parse(body) as object),
        ...(mark !== undefined && { isReplay: true as const }),
      };
    });
}

function numberIds(text: string): string {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  const nameOf = (id: string, kind: string): string => {
    if (!names.has(id)) {
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      names.set(id, `${kind}_${counts.get(kind)}`);
    }
    return names.get(id)!;
  };
  return text
    .replaceAll(/\b(bat|cpn|red|rvs)_[0-9a-z]{26}\b/g, nameOf)
    .replaceAll(/"u[0-9a-f]{12}u[0-9a-f]{12}"/g, (id) => `"${nameOf(id, "request")}"`)
    .replaceAll(/"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/g, (time) =>
      time.includes("-01-01T00:00:00.000Z") ? time : '"TIME"',
    )
    .replaceAll(/\b[0-9A-Z]{4}·{12}/g, "CODE");
}
