// Turns a step into an action: a call, a patch of a coupon, or the worker's turn. The numbers of the step become
// callers, coupons, merchants and names that exist when its turn comes.
import { newRequestId } from "../../support/request-id.ts";
import type { Coupon, Patch } from "./coupon.ts";
import type { Call, Model, Recorded } from "./judge.ts";
import type { Step } from "./life.ts";
import { merchantNames, type Caller, type End } from "./setup.ts";

// null: the step refers to something that does not exist yet.
export type Action = { call: Call } | { patch: Patch; coupon: Coupon; to: End } | { work: true } | null;
type Draft = Pick<Call, "by" | "operation" | "values"> & { requestId?: string };
type Choices = ReturnType<typeof createChoices>;

const unknownRedemption = `red_${"0".repeat(26)}`;

export function createChoices({ setup: { callers }, coupons, records }: Model) {
  // A caller takes part in every life, so each life has its own request IDs and keys.
  const life = newRequestId();
  let count = 0;
  const newName = () => `${life}-n${(count += 1)}`;
  const couponAt = (index: number): Coupon => coupons[index % coupons.length]!;
  const callerAt = (by: number): Caller => callers[by % callers.length]!;
  const recordAt = (back: number, list: Recorded[] = records): Recorded | undefined =>
    list.at(-1 - (list.length === 0 ? 0 : back % list.length));
  const isGrant = ({ call, status }: Recorded) => status === 200 && ["lock", "redeem"].includes(call.operation);
  return {
    newName,
    couponAt,
    callerAt,
    recordAt,
    grantAt: (back: number) => recordAt(back, records.filter(isGrant)),
    keyedAt: (back: number) =>
      recordAt(
        back,
        records.filter(({ call }) => call.key !== null),
      ),
    otherKey: `${life}-k2`,
    nameAt: (name: number) => (name === 0 ? newName() : `${life}-x${name}`),
    keyAt: (key: number, requestId: string) => (key === 0 ? null : key === 1 ? requestId : `${life}-k${key}`),
    releaser: callers.find(({ mayRelease }) => mayRelease)!,
    nextCaller: (by: Caller) => callerAt(callers.indexOf(by) + 1),
    // 0: the caller of the recorded call.
    callerOf: (recorded: Recorded | undefined, by: number): Caller =>
      by === 0 && recorded !== undefined ? recorded.call.by : callerAt(by),
    // 0: a merchant where the caller may redeem the coupon, if there is one.
    merchantAt(at: number, by: Caller, { kind }: Coupon): string {
      if (at > 0) return merchantNames[at - 1]!;
      const scope = kind.merchants;
      return by.merchants.find((merchant) => scope?.includes(merchant) ?? true) ?? by.merchants[0] ?? "mch_1";
    },
  };
}

export function resolve(choices: Choices, step: Step): Action {
  const { newName, couponAt, recordAt, keyAt } = choices;
  // Other lives use the other coupons of a larger batch.
  const isShared = couponAt(step.coupon).kind.isAlone !== true;
  if (isShared && /^(suspend|resume|recall)_batch$/.test(step.do)) return null;
  switch (step.do) {
    case "work":
      return { work: true };
    case "lapse":
    case "begin":
    case "release":
    case "extend":
      return { patch: step.do, coupon: couponAt(step.coupon), to: step.to };
    case "retry": {
      // Under a new name, only its idempotency-key makes it a retry.
      const recorded = step.how === "new name" ? choices.keyedAt(step.back) : recordAt(step.back);
      return recorded === undefined ? null : { call: { ...recorded.call, ...changeCall(choices, recorded, step.how) } };
    }
    default: {
      const { requestId = newName(), ...draft } = draftCall(choices, { ...step, do: step.do });
      const key = draft.operation === "query" ? null : keyAt(step.key, requestId);
      return { call: { ...draft, requestId, key } };
    }
  }
}

type CallStep = Step & { do: Exclude<Step["do"], Patch | "work" | "retry"> };

function draftCall(choices: Choices, step: CallStep): Draft {
  const by = choices.callerAt(step.by);
  const coupon = choices.couponAt(step.coupon);
  const own = { coupon: coupon.code, merchant: choices.merchantAt(step.at, by, coupon) };
  switch (step.do) {
    case "lock":
    case "redeem": {
      const order = Object.entries(step.order).filter(([, value]) => value !== undefined);
      const values = { ...own, ...Object.fromEntries(order) };
      return { by, operation: step.do, values, requestId: choices.nameAt(step.name) };
    }
    case "void":
      return { by, operation: step.do, values: own };
    case "query": {
      const { order_id: _, ...order } = step.order;
      const given = Object.entries(order).filter(([, value]) => value !== undefined);
      return { by, operation: step.do, values: { ...own, ...(step.name === 0 && Object.fromEntries(given)) } };
    }
    case "confirm":
    case "cancel":
      return draftOfLock(choices, step, step.do);
    case "cancel ahead": {
      const values = { lock_request_id: choices.nameAt(Math.max(1, step.name)), coupon: coupon.code };
      return { by, operation: "cancel", values };
    }
    case "reverse": {
      const grant = choices.grantAt(step.back);
      const redemption = grant === undefined ? unknownRedemption : JSON.parse(grant.text).redemption;
      return { by: choices.callerOf(grant, step.by), operation: "reverse", values: { redemption } };
    }
    case "allocate_batch":
    case "suspend_batch":
    case "resume_batch":
    case "recall_batch":
      return { by: step.by === 0 ? choices.releaser : by, operation: step.do, values: { batch: coupon.batch } };
  }
}

// Refers to a lock as its confirm or cancel should, or names another caller, coupon or merchant.
function draftOfLock(choices: Choices, step: Step, operation: "confirm" | "cancel"): Draft {
  const grant = choices.grantAt(step.back);
  const by = choices.callerOf(grant, step.by);
  const other = choices.couponAt(step.coupon);
  const right = grant?.call.values ?? { coupon: other.code, merchant: choices.merchantAt(0, by, other) };
  const isWrongCoupon = step.wrong > merchantNames.length;
  const lock = {
    lock_request_id: grant?.call.requestId ?? choices.newName(),
    coupon: isWrongCoupon ? other.code : right["coupon"],
  };
  if (operation === "cancel") return { by, operation, values: lock };
  return { by, operation, values: { ...lock, merchant: merchantNames[step.wrong - 1] ?? right["merchant"] } };
}

// How a retry differs from the recorded call.
function changeCall(choices: Choices, { call }: Recorded, how: Step["how"]): Partial<Call> {
  switch (how) {
    case "same":
      return {};
    case "changed":
      return { values: changeValue(call) };
    case "other operation":
      return call.operation === "lock" ? { operation: "redeem" } : {};
    case "other caller":
      return { by: choices.nextCaller(call.by) };
    case "new name":
      return { requestId: choices.newName() };
    case "other key":
      return { key: choices.otherKey };
  }
}

// Changes a field that the operation has.
function changeValue({ operation, values }: Call): Call["values"] {
  if (operation === "confirm") return { ...values, merchant: "mch_none" };
  if (operation === "cancel") return { ...values, lock_request_id: "another" };
  if (operation === "allocate_batch") return { batch: "bat_0" };
  const field = operation === "lock" || operation === "redeem" ? "order_id" : "reason";
  return { ...values, [field]: "another" };
}
