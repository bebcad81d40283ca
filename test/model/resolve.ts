// Turns a step into an action: a call with its body, a patch of a coupon, or the worker's turn.
import { writeBody, writeBodyDifferently } from "./body.ts";
import type { Call, Operation, Recorded } from "./call.ts";
import { createChoices, type BadCodes, type Choices } from "./choices.ts";
import type { Coupon, Patch } from "./coupon.ts";
import { decimalsOf, kindOf, type Caller, type Setup, type Terms } from "./kinds.ts";
import type { Model } from "./knowledge.ts";
import type { Amount, Order, RetryKind, Step } from "./steps.ts";

export type Action =
  | { call: Call; body: string }
  | { patch: Patch; coupon: Coupon; to?: "usual" | "past" | "longer" }
  | { work: true }
  // The step refers to something that does not exist yet.
  | null;
type StepOf<Name extends Step["do"]> = Extract<Step, { do: Name }>;

const unknownRedemption = `red_${"0".repeat(26)}`;
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

export function createResolver(model: Model, badCodes: BadCodes): (step: Step) => Action {
  const choices = createChoices(model, badCodes);
  return (step) => resolve(choices, step);
}

function resolve(choices: Choices, step: Step): Action {
  switch (step.do) {
    case "lock":
    case "redeem":
      return resolveGrant(choices, step);
    case "confirm":
    case "cancel":
      return resolveOfLock(choices, step);
    case "cancel ahead": {
      const values = { lock_request_id: choices.nameAt(step.name), coupon: choices.codeAt(step.coupon) };
      return makeCall(choices, choices.callerAt(step.by), "cancel", values);
    }
    case "reverse": {
      const grant = choices.grantAt(step.lock);
      const redemption = grant === undefined ? unknownRedemption : JSON.parse(grant.text).redemption;
      return makeCall(choices, callerOf(choices, grant, step.by), "reverse", { redemption }, { key: step.key });
    }
    case "void":
    case "query": {
      const by = choices.callerAt(step.by);
      const values = { coupon: choices.codeAt(step.coupon), merchant: choices.merchantAt(step.at, by, step.coupon) };
      return makeCall(choices, by, step.do, values);
    }
    case "allocate":
    case "get batch": {
      const { callers } = choices.setup;
      const by = step.by === 0 ? callers.find(({ mayRelease }) => mayRelease)! : choices.callerAt(step.by);
      const operation = step.do === "allocate" ? "allocate_batch" : "get_batch";
      return makeCall(choices, by, operation, { batch: choices.couponAt(step.coupon).batch });
    }
    case "retry": {
      const recorded = choices.recordAt(step.call);
      return recorded === undefined ? null : resolveRetry(choices, recorded, step.how);
    }
    case "get request": {
      const recorded = choices.recordAt(step.call);
      const values = { request_id: recorded?.call.requestId ?? choices.noName };
      return makeCall(choices, callerOf(choices, recorded, step.by), "get_request", values);
    }
    case "work":
      return { work: true };
    default: {
      const coupon = choices.couponAt(step.coupon);
      return step.do === "extend" ? { patch: step.do, coupon, to: step.to } : { patch: step.do, coupon };
    }
  }
}

function makeCall(
  choices: Choices,
  by: Caller,
  operation: Operation,
  values: Call["values"],
  { requestId = choices.newName(), key = 0 }: { requestId?: string; key?: number } = {},
): Action {
  const call = { by, operation, requestId, key: choices.keyAt(key, requestId), values };
  return { call, body: writeBody(call) };
}

// 0: the caller of the recorded call.
function callerOf(choices: Choices, recorded: Recorded | undefined, by: number): Caller {
  return by === 0 && recorded !== undefined ? recorded.call.by : choices.callerAt(by);
}

function resolveGrant(choices: Choices, step: StepOf<"lock" | "redeem">): Action {
  const by = choices.callerAt(step.by);
  const values = {
    coupon: choices.codeAt(step.coupon),
    merchant: choices.merchantAt(step.at, by, step.coupon),
    ...resolveOrder(choices, step.order, step.coupon),
  };
  return makeCall(choices, by, step.do, values, { requestId: choices.nameAt(step.name), key: step.key });
}

function resolveOrder(choices: Choices, order: Order, coupon: number): Record<string, unknown> {
  const { setup, couponAt } = choices;
  const { currency } = coupon > 2 ? { currency: "EUR" as const } : kindOf(couponAt(coupon).kind);
  const [stores, terminals] = labels[setup.variant];
  const amount = (given: Amount | null) => (given === null ? undefined : toAmount(given, currency, setup));
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

// Refers to a lock as its confirm or cancel should, or names another caller, coupon or merchant.
function resolveOfLock(choices: Choices, step: StepOf<"confirm" | "cancel">): Action {
  const grant = choices.grantAt(step.lock);
  const caller = callerOf(choices, grant, step.by);
  const at = step.do === "confirm" ? step.at : 0;
  const of = {
    lock_request_id: grant?.call.requestId ?? choices.noName,
    coupon:
      step.coupon === 0 && grant !== undefined
        ? grant.call.values["coupon"]
        : choices.codeAt(Math.max(0, step.coupon - 1)),
  };
  const merchant = at === 0 && grant !== undefined ? grant.call.values["merchant"] : choices.merchantAt(at, caller, 0);
  return makeCall(choices, caller, step.do, step.do === "confirm" ? { ...of, merchant } : of, { key: step.key });
}

function resolveRetry(choices: Choices, { call }: Recorded, how: RetryKind): Action {
  const retry = (changes: Partial<Call>): Action => {
    const changed = { ...call, ...changes };
    return { call: changed, body: writeBody(changed) };
  };
  switch (how) {
    case "same":
      return retry({});
    case "respelled":
      return { call, body: writeBodyDifferently(call) };
    case "changed":
      return retry({ values: changeValue(call) });
    case "other operation":
      return ["lock", "redeem"].includes(call.operation)
        ? retry({ operation: call.operation === "lock" ? "redeem" : "lock" })
        : null;
    case "other caller":
      return retry({ by: choices.callerAt(choices.setup.callers.indexOf(call.by) + 1) });
    case "new name":
      return retry({ requestId: choices.newName() });
    case "without key":
      return retry({ key: null });
    case "other key":
      return retry({ key: choices.otherKey });
  }
}

function toAmount({ minor, isFine }: Amount, currency: Terms["currency"], { unit }: Setup): number {
  const scale = unit === "minor" ? 1 : 10 ** decimalsOf[currency];
  return isFine ? (minor * 10 + 1) / (scale * 10) : minor / scale;
}

// Changes a field that the operation has.
function changeValue({ operation, values }: Call): Call["values"] {
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
