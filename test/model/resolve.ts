// From a step to what is done: a call with its body, or a patch of a coupon.
import { newRequestId } from "../support/service.ts";
import type { Coupon, Patch } from "./coupon.ts";
import { decimalsOf, kindOf, merchantNames, type Caller, type Cast, type Terms } from "./kinds.ts";
import type { Call, Model, Operation, Recorded } from "./model.ts";
import { respell, spell } from "./spell.ts";
import type { Again, Amount, Order, Step } from "./steps.ts";

export type Doing =
  | { call: Call; body: string }
  | { patch: Patch; coupon: Coupon; to?: "usual" | "past" | "longer" }
  | { work: true }
  // A step that finds nothing to speak of.
  | null;
// A code that is well made and nobody's, and one that is mistyped.
export type Odd = { ghost: string; mistyped: string };

const skus = ["A1", "B2", "C3", undefined];
const labels = {
  A: [
    ["Kasse 1", "Caf\u00e9", "=1+1"],
    ["T1", "7"],
  ],
  B: [
    ["S1", "S2", "S9"],
    ["T1", "T9"],
  ],
} as const;

export function createResolver(cast: Cast, model: Model, odd: Odd) {
  // Names of this run: request ids and keys are those of a caller, who takes part in all runs.
  const run = newRequestId();
  let count = 0;
  const { coupons, records } = model;
  const newName = () => `${run}-n${(count += 1)}`;
  const nameOf = (name: number) => (name === 0 ? newName() : `${run}-x${name}`);
  const keyOf = (key: number, requestId: string) => (key === 0 ? null : key === 1 ? requestId : `${run}-k${key}`);
  const callerOf = (by: number) => cast.callers[by % cast.callers.length]!;
  const couponOf = (index: number): Coupon => coupons[index % coupons.length]!;
  const codeOf = (index: number) => (index === 3 ? odd.ghost : index === 4 ? odd.mistyped : couponOf(index).code);
  // Where the caller may redeem the coupon, or somewhere else.
  function merchantOf(at: number, by: Caller, coupon: number): string {
    if (at > 0) return merchantNames[at - 1]!;
    const scope = kindOf(couponOf(coupon).kind).merchants;
    return by.merchants.find((merchant) => scope?.includes(merchant) ?? true) ?? by.merchants[0] ?? "mch_1";
  }
  const backTo = <T>(list: T[], back: number): T | undefined =>
    list.at(-1 - (list.length === 0 ? 0 : back % list.length));
  const grantOf = (back: number) =>
    backTo(
      records.filter(({ call, status }) => status === 200 && ["lock", "redeem"].includes(call.operation)),
      back,
    );
  const toCall = (by: Caller, operation: Operation, values: Call["values"], requestId = newName(), key = 0): Doing => {
    const call = { by, operation, requestId, key: keyOf(key, requestId), values };
    return { call, body: spell(call) };
  };

  // Of a lock, as it should be confirmed, or with another caller, coupon or merchant.
  function about(
    grant: Recorded | undefined,
    { by, coupon = 0, at = 0 }: { by: number; coupon?: number; at?: number },
  ) {
    const caller = by === 0 && grant !== undefined ? grant.call.by : callerOf(by);
    return {
      caller,
      lock_request_id: grant?.call.requestId ?? `${run}-none`,
      coupon: coupon === 0 && grant !== undefined ? grant.call.values["coupon"] : codeOf(Math.max(0, coupon - 1)),
      merchant: at === 0 && grant !== undefined ? grant.call.values["merchant"] : merchantOf(at, caller, 0),
    };
  }

  function orderOf(order: Order, coupon: number): Record<string, unknown> {
    const { currency } = coupon > 2 ? { currency: "EUR" as const } : kindOf(couponOf(coupon).kind);
    const [stores, terminals] = labels[cast.variant];
    const amount = (given: Amount | null) => (given === null ? undefined : amountOf(given, currency, cast));
    const items = order.items?.map((item) => dropUndefined({ sku: skus[item.sku], amount: amount(item.amount) }));
    return dropUndefined({
      order_amount: amount(order.amount),
      currency: [undefined, currency, "USD"][order.currency],
      redemption_context: items && { items },
      store: order.store === 0 ? undefined : stores[order.store - 1],
      terminal: order.terminal === 0 ? undefined : terminals[order.terminal - 1],
      order_id: order.orderId === 0 ? undefined : `order ${order.orderId}`,
    });
  }

  function again({ call }: Recorded, how: Again): Doing {
    const retry = (changes: Partial<Call>): Doing => {
      const changed = { ...call, ...changes };
      return { call: changed, body: spell(changed) };
    };
    switch (how) {
      case "same":
        return retry({});
      case "respelled":
        return { call, body: respell(call) };
      case "changed":
        return retry({ values: change(call) });
      case "other operation":
        return ["lock", "redeem"].includes(call.operation)
          ? retry({ operation: call.operation === "lock" ? "redeem" : "lock" })
          : null;
      case "other caller":
        return retry({ by: callerOf(cast.callers.indexOf(call.by) + 1) });
      case "new name":
        return retry({ requestId: newName() });
      case "without key":
        return retry({ key: null });
      case "other key":
        return retry({ key: `${run}-k2` });
    }
  }

  return function resolve(step: Step): Doing {
    switch (step.do) {
      case "lock":
      case "redeem": {
        const by = callerOf(step.by);
        const values = {
          coupon: codeOf(step.coupon),
          merchant: merchantOf(step.at, by, step.coupon),
          ...orderOf(step.order, step.coupon),
        };
        return toCall(by, step.do, values, nameOf(step.name), step.key);
      }
      case "confirm":
      case "cancel": {
        const { caller, ...all } = about(grantOf(step.lock), step);
        const { merchant: _, ...some } = all;
        return toCall(caller, step.do, step.do === "confirm" ? all : some, newName(), step.key);
      }
      case "cancel ahead":
        return toCall(callerOf(step.by), "cancel", { lock_request_id: nameOf(step.name), coupon: codeOf(step.coupon) });
      case "reverse": {
        const grant = grantOf(step.lock);
        const redemption = grant === undefined ? `red_${"0".repeat(26)}` : JSON.parse(grant.text).redemption;
        return toCall(about(grant, step).caller, "reverse", { redemption }, newName(), step.key);
      }
      case "void":
      case "query": {
        const by = callerOf(step.by);
        return toCall(by, step.do, { coupon: codeOf(step.coupon), merchant: merchantOf(step.at, by, step.coupon) });
      }
      case "allocate":
      case "get batch": {
        const by = step.by === 0 ? cast.callers.find(({ mayRelease }) => mayRelease)! : callerOf(step.by);
        return toCall(by, step.do === "allocate" ? "allocate_batch" : "get_batch", {
          batch: couponOf(step.coupon).batch,
        });
      }
      case "again": {
        const recorded = backTo(records, step.call);
        return recorded === undefined ? null : again(recorded, step.how);
      }
      case "ask": {
        const recorded = backTo(records, step.call);
        return toCall(step.by === 0 && recorded !== undefined ? recorded.call.by : callerOf(step.by), "get_request", {
          request_id: recorded?.call.requestId ?? `${run}-none`,
        });
      }
      case "work":
        return { work: true };
      default: {
        const coupon = couponOf(step.coupon);
        return step.do === "extend" ? { patch: step.do, coupon, to: step.to } : { patch: step.do, coupon };
      }
    }
  };
}

function amountOf({ minor, isFine }: Amount, currency: Terms["currency"], { unit }: Cast): number {
  const scale = unit === "minor" ? 1 : 10 ** decimalsOf[currency];
  return isFine ? (minor * 10 + 1) / (scale * 10) : minor / scale;
}

// Another value, in a field that the operation has.
function change({ operation, values }: Call): Call["values"] {
  switch (operation) {
    case "confirm":
      return { ...values, merchant: "mch_none" };
    case "cancel":
      return { ...values, lock_request_id: "another" };
    case "allocate_batch":
      return { batch: "bat_0" };
    case "lock":
    case "redeem":
      return { ...values, order_id: `${values["order_id"] ?? ""}!` };
    default:
      return { ...values, reason: "another" };
  }
}

function dropUndefined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
