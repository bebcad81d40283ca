// Void, query, and the operations on batches and requests.
import { isoTime, notFound, ok, refuse, type Call, type Expected } from "./call.ts";
import { addEvent, isLive, statusOf } from "./coupon.ts";
import { toAmount } from "./discount.ts";
import { kindOf } from "./kinds.ts";
import { findOwnCoupon } from "./lookup.ts";
import type { Model } from "./knowledge.ts";

export function judgeVoid(model: Model, call: Call): Expected {
  const found = findOwnCoupon(model, call);
  if ("status" in found) return found;
  const { coupon } = found;
  if (!["CREATED", "ISSUED"].includes(statusOf(coupon))) return refuse(409, "COUPON_NOT_VOIDABLE");
  return ok({ coupon_id: coupon.id, status: "VOIDED" }, () => {
    coupon.isVoided = true;
    addEvent(coupon, "voided");
  });
}

export function judgeQuery(model: Model, call: Call): Expected {
  const found = findOwnCoupon(model, call);
  if ("status" in found) return found;
  const { coupon } = found;
  const { variant, unit } = model.setup;
  const { currency } = kindOf(coupon.kind);
  const common = { coupon_id: coupon.id, status: statusOf(coupon), batch_id: coupon.batch, created_at: isoTime };
  if (variant === "B") return ok({ coupon: { ...common, template_id: `tpl_${coupon.kind}` } });
  const last = coupon.redemptions.findLast((one) => one.status === "REVERSED" || isLive(one));
  const redemption = last && {
    merchant_id: last.merchant,
    status: last.status,
    started_at: isoTime,
    discount_amount: toAmount(last.minor, currency, unit),
    currency,
  };
  return ok({
    coupon: { ...common, valid_from: coupon.validFrom, valid_to: coupon.validTo, ...(redemption && { redemption }) },
  });
}

export function judgeBatch({ coupons }: Model, { by, values, operation }: Call): Expected {
  const inside = coupons.filter((coupon) => coupon.batch === values["batch"]);
  if (inside.length === 0 || !by.mayRelease) return notFound("batch");
  const { isReleased, kind } = inside[0]!;
  const answer = (status: string) => ({
    batch: (given: any) =>
      given?.external_id === values["batch"] && given.status === status && given.template_id === `tpl_${kind}`,
  });
  if (operation === "get_batch") return ok(answer(isReleased ? "ALLOCATED" : "COMPLETED"));
  if (isReleased) return refuse(409, "BATCH_ALREADY_ALLOCATED");
  return ok(answer("ALLOCATED"), () => {
    for (const coupon of inside) coupon.isReleased = true;
  });
}

export function judgeGetRequest({ records }: Model, { by, values }: Call): Expected {
  const found = records.find(
    (record) => record.call.by.scope === by.scope && record.call.requestId === values["request_id"],
  );
  if (found === undefined) return notFound("request");
  const request = {
    request_id: found.call.requestId,
    operation: found.call.operation,
    http_status: found.status,
    response: JSON.parse(found.text),
    recorded_at: isoTime,
  };
  return ok({ request });
}
