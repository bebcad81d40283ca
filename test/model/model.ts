// The service as README tells it, small enough to be read at once: who may do what with a few coupons, in memory. It says
// how each call has to be answered. Ids, and the first answer to a request, it learns from the service.
import { free, isLive, isOver, statusOf, tell, type Coupon, type Redemption } from "./coupon.ts";
import { kindOf, stores, validFrom, type Caller, type Cast } from "./kinds.ts";
import { findBadAmount, toAmount, worthOf, type Basket } from "./worth.ts";

export type Operation =
  | "lock"
  | "redeem"
  | "confirm"
  | "cancel"
  | "reverse"
  | "void"
  | "query"
  | "allocate_batch"
  | "get_batch"
  | "get_request";
// `values`: the body with the code normalized and without request_id.
export type Call = {
  by: Caller;
  operation: Operation;
  requestId: string;
  key: string | null;
  values: Record<string, unknown>;
};
export type Reply = { status: number; text: string; json: any; isReplay: boolean };
// A field that is a pattern or a function only has to match; the path of a 400 is its `details`. `learn` has to be called
// with the answer before the next call is judged.
export type Expected = {
  status: number;
  code?: string;
  details?: unknown;
  fields?: Record<string, unknown>;
  replayOf?: string;
  learn?: (reply: Reply) => void;
};
export type Recorded = { call: Call; status: number; text: string };
export type Model = ReturnType<typeof createModel>;

const uuidId = (prefix: string) => new RegExp(`^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`);
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const reads = ["query", "get_batch", "get_request"];

export function createModel(cast: Cast, coupons: Coupon[], mistyped: string) {
  const records: Recorded[] = [];

  const refuse = (status: number, code: string, details: unknown = null): Expected => ({ status, code, details });
  const unknown = (resource: string) => refuse(404, "NOT_FOUND", { resource });
  const invalid = (path: string) => refuse(400, "INVALID_REQUEST", path);
  const ok = (fields: Record<string, unknown>, learn: (reply: Reply) => void = () => {}): Expected => ({
    status: 200,
    fields: { ok: true, ...fields },
    learn,
  });

  const find = ({ by, values }: Call) =>
    by.tenant === cast.tenant ? coupons.find(({ code }) => code === values["coupon"]) : undefined;
  const isInScope = ({ kind }: Coupon, merchant: unknown) =>
    kindOf(kind).merchants?.includes(merchant as string) ?? true;
  const mayActFor = ({ merchants }: Caller, merchant: unknown) => merchants.includes(merchant as string);
  const lockMark = (scope: string, lockId: unknown) => JSON.stringify([scope, lockId]);
  const lockOf = ({ by, values }: Call, coupon: Coupon) =>
    coupon.redemptions.find(({ scope, lockId }) => scope === by.scope && lockId === values["lock_request_id"]);

  // What is wrong with the shape, before anything is looked up or recorded.
  function readShape({ operation, values }: Call): Expected | null {
    if (cast.variant === "B" && "redemption_context" in values) return invalid("redemption_context");
    if (cast.variant === "B" && "terminal" in values && !("store" in values)) return invalid("terminal");
    return "coupon" in values && values["coupon"] === mistyped && operation !== "reverse"
      ? refuse(422, "COUPON_CODE_INVALID")
      : null;
  }

  function replay(call: Call): Expected | null {
    const mine = records.filter((record) => record.call.by.scope === call.by.scope);
    const used = [
      mine.find((record) => record.call.requestId === call.requestId),
      mine.find((record) => call.key !== null && record.call.key === call.key),
    ].filter((one) => one !== undefined);
    if (used.length === 0) return null;
    const isEqual = used.every(
      (record) => record.call.operation === call.operation && canonical(record.call.values) === canonical(call.values),
    );
    return isEqual ? { status: used[0]!.status, replayOf: used[0]!.text } : refuse(422, "IDEMPOTENCY_KEY_REUSED");
  }

  function findPlace({ values: { merchant, store, terminal } }: Call): Expected | null {
    if (cast.variant === "A" || store === undefined) return null;
    const terminals = stores[merchant as string]?.[store as string];
    if (terminals === undefined) return unknown("store");
    return terminal === undefined || terminals.includes(terminal as string) ? null : unknown("terminal");
  }

  function grant(call: Call): Expected {
    const { by, values, requestId, operation } = call;
    if (!mayActFor(by, values["merchant"])) return unknown("merchant");
    const coupon = find(call);
    if (coupon === undefined) return unknown("coupon");
    const terms = kindOf(coupon.kind);
    const nowhere = findPlace(call);
    if (nowhere !== null) return nowhere;
    const bad = findBadAmount(values as Basket, terms, cast.unit);
    if (bad !== null) return invalid(bad);
    if (!isInScope(coupon, values["merchant"])) return refuse(422, "MERCHANT_NOT_IN_SCOPE");
    if (coupon.marks.has(lockMark(by.scope, requestId))) return refuse(409, "LOCK_CANCELLED");
    const status = statusOf(coupon);
    if (status === "VOIDED" || status === "REDEEMED") return refuse(409, `COUPON_${status}`);
    if (isOver(coupon)) return refuse(409, "COUPON_EXPIRED");
    if (status === "LOCKED")
      return refuse(409, "COUPON_LOCKED", { lock_expires_at: coupon.redemptions.find(isLive)!.lockExpiresAt });
    if (!coupon.isReleased) return refuse(409, "COUPON_NOT_RELEASED");
    if (coupon.validFrom === validFrom.later) return refuse(409, "COUPON_NOT_YET_VALID");
    const worth = worthOf(values as Basket, terms, cast.unit);
    if ("code" in worth)
      return refuse(422, worth.code, worth.missing === undefined ? null : { missing: worth.missing });

    const isLock = operation === "lock";
    const discount_amount = toAmount(worth.minor, terms.currency, cast.unit);
    return ok(
      { redemption: uuidId("red"), discount_amount, ...(isLock && { lock_expires_at: isoTime }) },
      ({ json }) => {
        coupon.redemptions.push({
          id: json.redemption,
          scope: by.scope,
          lockId: requestId,
          merchant: values["merchant"] as string,
          minor: worth.minor,
          lockExpiresAt: json.lock_expires_at ?? null,
          status: isLock ? "LOCKED" : "REDEEMED",
          isPastEnd: false,
        });
        if (!isLock) tell(coupon, "redeemed", json.redemption);
      },
    );
  }

  function readLock(lock: Redemption): Expected | null {
    if (lock.status === "LOCKED") return lock.isPastEnd ? refuse(409, "LOCK_EXPIRED") : null;
    return refuse(409, lock.status === "CANCELLED" ? "LOCK_CANCELLED" : "LOCK_CONFIRMED");
  }

  function confirm(call: Call): Expected {
    const { merchant } = call.values;
    if (!mayActFor(call.by, merchant)) return unknown("merchant");
    const coupon = find(call);
    if (coupon === undefined) return unknown("coupon");
    const lock = lockOf(call, coupon);
    if (lock?.merchant !== merchant || lock === undefined)
      return isInScope(coupon, merchant) ? refuse(409, "LOCK_NOT_FOUND") : refuse(422, "MERCHANT_NOT_IN_SCOPE");
    return (
      readLock(lock) ??
      ok({ redemption: lock.id, status: "REDEEMED" }, () => {
        lock.status = "REDEEMED";
        tell(coupon, "redeemed", lock.id);
      })
    );
  }

  function cancel(call: Call): Expected {
    const coupon = find(call);
    if (coupon === undefined) return unknown("coupon");
    const lock = lockOf(call, coupon);
    if (lock === undefined) {
      const learn = () => void coupon.marks.add(lockMark(call.by.scope, call.values["lock_request_id"]));
      return { ...refuse(409, "LOCK_NOT_FOUND"), learn };
    }
    return (
      readLock(lock) ??
      ok({ redemption: lock.id, status: "CANCELLED" }, () => {
        lock.status = "CANCELLED";
        free(coupon);
      })
    );
  }

  function reverse({ by, values }: Call): Expected {
    const coupon = coupons.find(({ redemptions }) => redemptions.some(({ id }) => id === values["redemption"]));
    const redemption = coupon?.redemptions.find(({ id }) => id === values["redemption"]);
    if (coupon === undefined || redemption === undefined || !mayActFor(by, redemption.merchant))
      return unknown("redemption");
    if (redemption.status === "REVERSED") return refuse(409, "REDEMPTION_REVERSED");
    if (redemption.status !== "REDEEMED") return refuse(409, "REDEMPTION_NOT_REVERSIBLE");
    return ok({ redemption: redemption.id, reversal: uuidId("rvs"), status: "REVERSED" }, () => {
      redemption.status = "REVERSED";
      tell(coupon, "reversed", redemption.id);
      free(coupon);
    });
  }

  function voidCoupon(call: Call): Expected {
    const seen = see(call);
    if ("status" in seen) return seen;
    const { coupon } = seen;
    if (!["CREATED", "ISSUED"].includes(statusOf(coupon))) return refuse(409, "COUPON_NOT_VOIDABLE");
    return ok({ coupon_id: coupon.id, status: "VOIDED" }, () => {
      coupon.isVoided = true;
      tell(coupon, "voided");
    });
  }

  // The coupon that void and query speak of, or why there is none for this caller.
  function see(call: Call): { coupon: Coupon } | Expected {
    if (!mayActFor(call.by, call.values["merchant"])) return unknown("merchant");
    const coupon = find(call);
    if (coupon === undefined) return unknown("coupon");
    return isInScope(coupon, call.values["merchant"]) ? { coupon } : refuse(422, "MERCHANT_NOT_IN_SCOPE");
  }

  function query(call: Call): Expected {
    const seen = see(call);
    if ("status" in seen) return seen;
    const { coupon } = seen;
    const { currency } = kindOf(coupon.kind);
    const common = { coupon_id: coupon.id, status: statusOf(coupon), batch_id: coupon.batch, created_at: isoTime };
    if (cast.variant === "B") return ok({ coupon: { ...common, template_id: `tpl_${coupon.kind}` } });
    const last = coupon.redemptions.findLast((one) => one.status === "REVERSED" || isLive(one));
    const redemption = last && {
      merchant_id: last.merchant,
      status: last.status,
      started_at: isoTime,
      discount_amount: toAmount(last.minor, currency, cast.unit),
      currency,
    };
    return ok({
      coupon: { ...common, valid_from: coupon.validFrom, valid_to: coupon.validTo, ...(redemption && { redemption }) },
    });
  }

  function batch({ by, values, operation }: Call): Expected {
    const inside = coupons.filter((coupon) => coupon.batch === values["batch"]);
    if (inside.length === 0 || !by.mayRelease) return unknown("batch");
    const { isReleased } = inside[0]!;
    const answer = (status: string) => ({
      batch: (given: any) =>
        given?.external_id === values["batch"] &&
        given.status === status &&
        given.template_id === `tpl_${inside[0]!.kind}`,
    });
    if (operation === "get_batch") return ok(answer(isReleased ? "ALLOCATED" : "COMPLETED"));
    if (isReleased) return refuse(409, "BATCH_ALREADY_ALLOCATED");
    return ok(answer("ALLOCATED"), () => {
      for (const coupon of inside) coupon.isReleased = true;
    });
  }

  function getRequest({ by, values }: Call): Expected {
    const found = records.find(
      (record) => record.call.by.scope === by.scope && record.call.requestId === values["request_id"],
    );
    if (found === undefined) return unknown("request");
    const request = {
      request_id: found.call.requestId,
      operation: found.call.operation,
      http_status: found.status,
      response: JSON.parse(found.text),
      recorded_at: isoTime,
    };
    return ok({ request });
  }

  const judges: Record<Operation, (call: Call) => Expected> = {
    lock: grant,
    redeem: grant,
    confirm,
    cancel,
    reverse,
    void: voidCoupon,
    query,
    allocate_batch: batch,
    get_batch: batch,
    get_request: getRequest,
  };

  function judge(call: Call): Expected {
    const isRead = reads.includes(call.operation);
    const early = readShape(call) ?? (isRead ? null : replay(call));
    if (early !== null) return early;
    const expected = judges[call.operation](call);
    if (isRead || expected.status === 400) return expected;
    return {
      ...expected,
      learn(reply) {
        records.push({ call, status: reply.status, text: reply.text });
        expected.learn?.(reply);
      },
    };
  }

  return { coupons, records, judge };
}

// The same for equal values, whatever the order of their fields.
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, field) =>
    typeof field === "object" && field !== null && !Array.isArray(field)
      ? Object.fromEntries(Object.entries(field).sort())
      : field,
  );
}
