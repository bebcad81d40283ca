// The model: the service as its documents describe it, small enough to read at once. It predicts the answer to each
// call on a few coupons. IDs and the first answer to a request come from the service.
import { addEvent, isLive, isOver, settle, statusOf, type Coupon, type Redemption } from "./coupon.ts";
import { computeDiscount, findBadAmount, toAmount, type Basket, type Refused } from "./discount.ts";
import { validFrom, type Caller, type Setup, type Terms } from "./setup.ts";

export type Operation = keyof typeof judges;
// `values`: the body without request_id.
export type Call = {
  by: Caller;
  operation: Operation;
  requestId: string;
  key: string | null;
  values: Record<string, unknown>;
};
export type Answer = { status: number; text: string; json: any; isReplay: boolean };
export type Recorded = { call: Call; status: number; text: string };
// records: the answered calls that the service records.
export type Model = { setup: Setup; coupons: Coupon[]; records: Recorded[] };
// A field of the body may be a pattern or a function that the answer must match. `learn` must run with the answer
// before the next call is judged.
export type Expected = {
  status: number;
  body: Record<string, unknown>;
  replayOf?: string;
  learn?: (answer: Answer) => void;
};

const uuidId = (prefix: string) => new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`);
export const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const refuse = (status: number, code: string, details: unknown = null): Expected => ({
  status,
  body: { code, message: /./, request_id: /./, details },
});
const notFound = (resource: string): Expected => refuse(404, "NOT_FOUND", { resource });
const invalid = (path: string): Expected =>
  refuse(400, "INVALID_REQUEST", (details: any) => details.issues[0].path === path);
const ok = (body: Record<string, unknown>, learn: (answer: Answer) => void = () => {}): Expected => ({
  status: 200,
  body: { ok: true, ...body },
  learn,
});

const judges = {
  lock: judgeGrant,
  redeem: judgeGrant,
  confirm: judgeConfirm,
  cancel: judgeCancel,
  reverse: judgeReverse,
  void: judgeVoid,
  query: judgeQuery,
  allocate_batch: judgeAllocate,
  suspend_batch: judgeStop,
  resume_batch: judgeStop,
  recall_batch: judgeStop,
};

export function judge(model: Model, call: Call): Expected {
  if (model.setup.variant === "B" && "redemption_context" in call.values) return invalid("redemption_context");
  const isRead = call.operation === "query";
  const replay = isRead ? null : findReplay(model, call);
  if (replay !== null) return replay;
  const expected = judges[call.operation](model, call);
  if (isRead || expected.status === 400) return expected;
  return {
    ...expected,
    learn(answer) {
      model.records.push({ call, status: answer.status, text: answer.text });
      expected.learn?.(answer);
    },
  };
}

function findReplay({ records }: Model, call: Call): Expected | null {
  const own = records.filter((record) => record.call.by.scope === call.by.scope);
  const byName = own.find((record) => record.call.requestId === call.requestId);
  const byKey = own.find((record) => call.key !== null && record.call.key === call.key);
  const used = [byName, byKey].filter((one) => one !== undefined);
  if (used.length === 0) return null;
  const write = ({ operation, values }: Call) => JSON.stringify([operation, values]);
  if (used.some((record) => write(record.call) !== write(call))) return refuse(422, "IDEMPOTENCY_KEY_REUSED");
  const { status, text } = used[0]!;
  const learn = () => void records.push({ call: { ...call, key: null }, status, text });
  return { status, body: {}, replayOf: text, ...(byName === undefined && { learn }) };
}

const mayActFor = ({ merchants }: Caller, merchant: unknown): boolean => merchants.includes(merchant as string);
const isInScope = ({ kind }: Coupon, merchant: unknown): boolean =>
  kind.merchants?.includes(merchant as string) ?? true;
// Names a lock that was cancelled before it came.
const lockMark = (scope: string, lockId: unknown): string => `${scope} ${lockId as string}`;

// The coupon, when the caller may act for the merchant; else the refusal.
function reach(model: Model, call: Call): Coupon | Expected {
  if (!mayActFor(call.by, call.values["merchant"])) return notFound("merchant");
  return findCoupon(model, call) ?? notFound("coupon");
}

function findCoupon({ coupons }: Model, { by, values }: Call): Coupon | undefined {
  return by.isOwn ? coupons.find(({ code }) => code === values["coupon"]) : undefined;
}

// The lock or redeem that a request_id names: that of the first call, or of a retry found by its idempotency-key.
function findLock({ records }: Model, { by, values }: Call, coupon: Coupon): Redemption | undefined {
  const named = records.find(({ call }) => call.by.scope === by.scope && call.requestId === values["lock_request_id"]);
  if (named?.status !== 200 || !["lock", "redeem"].includes(named.call.operation)) return undefined;
  const { redemption } = JSON.parse(named.text);
  return coupon.redemptions.find(({ id }) => id === redemption);
}

function judgeGrant(model: Model, call: Call): Expected {
  const { values } = call;
  const { unit } = model.setup;
  const coupon = reach(model, call);
  if ("status" in coupon) return coupon;
  const terms = coupon.kind;
  const badAmount = findBadAmount(values as Basket, terms, unit);
  if (badAmount !== null) return invalid(badAmount);
  if (!isInScope(coupon, values["merchant"])) return refuse(422, "MERCHANT_NOT_IN_SCOPE");
  const refusal = checkState(coupon, call);
  if (refusal !== null) return refusal;
  const discount = computeDiscount(values as Basket, terms, unit);
  if ("code" in discount) return refuse(422, discount.code, detailsOfDiscount(discount, terms, unit));
  return grant(coupon, call, discount.minor, toAmount(discount.minor, terms.currency, unit));
}

function detailsOfDiscount({ code, missing }: Refused, { currency, min }: Terms, unit: Setup["unit"]): unknown {
  if (code === "ORDER_BELOW_MINIMUM") return { min_order_amount: toAmount(min!, currency, unit), currency };
  if (code === "CURRENCY_MISMATCH") return { currency };
  return missing === undefined ? null : { missing };
}

function checkState(coupon: Coupon, { by, requestId }: Call): Expected | null {
  if (coupon.marks.has(lockMark(by.scope, requestId))) return refuse(409, "LOCK_CANCELLED");
  if (coupon.isSuspended) return refuse(409, "BATCH_SUSPENDED");
  const status = statusOf(coupon);
  if (status === "VOIDED") return refuse(409, "COUPON_VOIDED", { voided_at: isoTime });
  if (status === "REDEEMED") return refuse(409, "COUPON_REDEEMED", { redeemed_at: isoTime });
  if (isOver(coupon)) return refuse(409, "COUPON_EXPIRED", { valid_to: coupon.validTo });
  if (status === "LOCKED")
    return refuse(409, "COUPON_LOCKED", { lock_expires_at: coupon.redemptions.find(isLive)!.lockExpiresAt });
  if (!coupon.isReleased) return refuse(409, "COUPON_NOT_RELEASED");
  return coupon.validFrom === validFrom.later
    ? refuse(409, "COUPON_NOT_YET_VALID", { valid_from: coupon.validFrom })
    : null;
}

function grant(coupon: Coupon, { values, requestId, operation }: Call, minor: number, amount: number): Expected {
  const isLock = operation === "lock";
  const fields = {
    redemption: uuidId("red"),
    coupon_id: coupon.id,
    discount_amount: amount,
    currency: coupon.kind.currency,
    ...(isLock && { lock_expires_at: isoTime }),
  };
  return ok(fields, ({ json }) => {
    coupon.redemptions.push({
      id: json.redemption,
      lockId: requestId,
      merchant: values["merchant"] as string,
      minor,
      lockExpiresAt: json.lock_expires_at ?? null,
      status: isLock ? "LOCKED" : "REDEEMED",
      isPastEnd: false,
    });
    if (!isLock) addEvent(coupon, "redeemed", json.redemption);
  });
}

// Why a lock cannot be confirmed or cancelled.
function checkLock(lock: Redemption): Expected | null {
  if (lock.status === "LOCKED")
    return lock.isPastEnd ? refuse(409, "LOCK_EXPIRED", { lock_expires_at: isoTime }) : null;
  if (lock.status === "CANCELLED") return refuse(409, "LOCK_CANCELLED");
  return refuse(409, "LOCK_CONFIRMED", { redemption: lock.id });
}

function judgeConfirm(model: Model, call: Call): Expected {
  const { merchant } = call.values;
  const coupon = reach(model, call);
  if ("status" in coupon) return coupon;
  const lock = findLock(model, call, coupon);
  if (lock === undefined || lock.merchant !== merchant)
    return isInScope(coupon, merchant) ? refuse(409, "LOCK_NOT_FOUND") : refuse(422, "MERCHANT_NOT_IN_SCOPE");
  return (
    checkLock(lock) ??
    ok({ redemption: lock.id, status: "REDEEMED" }, () => {
      lock.status = "REDEEMED";
      addEvent(coupon, "redeemed", lock.id);
    })
  );
}

function judgeCancel(model: Model, call: Call): Expected {
  const coupon = findCoupon(model, call);
  if (coupon === undefined) return notFound("coupon");
  const lock = findLock(model, call, coupon);
  if (lock === undefined) {
    const learn = () => void coupon.marks.add(lockMark(call.by.scope, call.values["lock_request_id"]));
    return { ...refuse(409, "LOCK_NOT_FOUND"), learn };
  }
  return (
    checkLock(lock) ??
    ok({ redemption: lock.id, status: "CANCELLED" }, () => {
      lock.status = "CANCELLED";
      settle(coupon);
    })
  );
}

function judgeReverse({ coupons }: Model, { by, values }: Call): Expected {
  const isMeant = ({ id }: Redemption) => id === values["redemption"];
  const coupon = coupons.find(({ redemptions }) => redemptions.some(isMeant));
  const redemption = coupon?.redemptions.find(isMeant);
  if (coupon === undefined || redemption === undefined || !mayActFor(by, redemption.merchant))
    return notFound("redemption");
  if (redemption.status === "REVERSED")
    return refuse(409, "REDEMPTION_REVERSED", { reversal: uuidId("rvs"), reversed_at: isoTime });
  if (redemption.status !== "REDEEMED") return refuse(409, "REDEMPTION_NOT_REVERSIBLE");
  return ok({ redemption: redemption.id, reversal: uuidId("rvs"), status: "REVERSED" }, () => {
    redemption.status = "REVERSED";
    addEvent(coupon, "reversed", redemption.id);
    settle(coupon);
  });
}

function judgeVoid(model: Model, call: Call): Expected {
  const coupon = reach(model, call);
  if ("status" in coupon) return coupon;
  if (!isInScope(coupon, call.values["merchant"])) return refuse(422, "MERCHANT_NOT_IN_SCOPE");
  if (!["CREATED", "ISSUED"].includes(statusOf(coupon))) return refuse(409, "COUPON_NOT_VOIDABLE");
  return ok({ coupon_id: coupon.id, status: "VOIDED" }, () => {
    coupon.isVoided = true;
    addEvent(coupon, "voided");
  });
}

function judgeQuery(model: Model, call: Call): Expected {
  const coupon = reach(model, call);
  if ("status" in coupon) return coupon;
  const isQuoted = "order_amount" in call.values || "redemption_context" in call.values;
  const lock = isQuoted ? judgeGrant(model, call) : null;
  if (lock?.status === 400) return lock;
  if (!isInScope(coupon, call.values["merchant"])) return refuse(422, "MERCHANT_NOT_IN_SCOPE");
  const { unit } = model.setup;
  const { currency } = coupon.kind;
  const last = coupon.redemptions.findLast((one) => one.status === "REVERSED" || isLive(one));
  const isShown = last !== undefined && mayActFor(call.by, last.merchant);
  const redemption = isShown && {
    redemption: last.id,
    merchant_id: last.merchant,
    status: last.status,
    started_at: isoTime,
    discount_amount: toAmount(last.minor, currency, unit),
    currency,
  };
  const shown = {
    coupon_id: coupon.id,
    status: statusOf(coupon),
    template_id: coupon.kind.template,
    batch_id: coupon.batch,
    created_at: isoTime,
    valid_from: coupon.validFrom,
    valid_to: coupon.validTo,
    ...(redemption && { redemption }),
  };
  if (lock === null) return ok({ coupon: shown });
  const { discount_amount = null, code = null } = lock.body;
  const message = code === null ? null : /./;
  return ok({ coupon: shown, quote: { redeemable: code === null, discount_amount, currency, code, message } });
}

function judgeAllocate({ coupons }: Model, { by, values }: Call): Expected {
  const inside = coupons.filter((coupon) => coupon.batch === values["batch"]);
  if (inside.length === 0 || !by.mayRelease) return notFound("batch");
  if (inside[0]!.isRecalled) return refuse(409, "BATCH_SUSPENDED");
  if (inside[0]!.isReleased) return refuse(409, "BATCH_ALREADY_ALLOCATED");
  const batch = (given: any) => given?.external_id === values["batch"] && given.status === "ALLOCATED";
  return ok({ batch }, () => {
    for (const coupon of inside) coupon.isReleased = true;
  });
}

function judgeStop({ coupons }: Model, { by, operation, values }: Call): Expected {
  const coupon = coupons.find((one) => one.batch === values["batch"]);
  if (coupon === undefined || !by.mayRelease) return notFound("batch");
  if (operation === "resume_batch" && coupon.isRecalled) return refuse(409, "BATCH_SUSPENDED");
  const isRecalled = coupon.isRecalled || operation === "recall_batch";
  const isSuspended = operation !== "resume_batch";
  const batch = (given: any) =>
    given?.external_id === values["batch"] &&
    (given.suspended_at !== null) === isSuspended &&
    "recall" in given === isRecalled;
  return ok({ batch }, () => void Object.assign(coupon, { isRecalled, isSuspended }));
}
