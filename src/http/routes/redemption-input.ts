// The input of lock and redeem, and their refusals. Both differ between the variants.
import { z } from "zod";
import { amount, coupon, currency, externalId, label, printable, requestId } from "../fields.ts";
import type { ErrorCode, Resource } from "../errors.ts";
import type { Variant } from "../../gate/gate.ts";
import type { Values } from "../route.ts";

const common = {
  request_id: requestId,
  coupon,
  merchant: externalId,
  order_amount: amount
    .optional()
    .describe("The total of the order. Required if the discount is a percentage or has a minimum."),
  currency: currency.optional().describe("Without it: the currency of the template."),
  order_id: printable(128).optional().describe("Your number for the order."),
};

const item = z.strictObject({
  sku: printable(128).optional(),
  quantity: amount.optional(),
  amount: amount.optional().describe("The total of the line."),
});

// Further fields of redemption_context have no effect, but a retry must repeat them.
const inVariantA = z.strictObject({
  ...common,
  store: label.optional(),
  terminal: label.optional(),
  redemption_context: z
    .looseObject({ items: z.array(item).optional() })
    .optional()
    .describe("Further fields beside items have no effect, but a repeat must have the same ones."),
});

const inVariantB = z
  .strictObject({ ...common, store: externalId.optional(), terminal: externalId.optional() })
  .refine((value) => value.terminal === undefined || value.store !== undefined, {
    path: ["terminal"],
    error: "needs a store",
  })
  .meta({ dependentRequired: { terminal: ["store"] } });

export const redemptionSchema = (variant: Variant): z.ZodType<Values> => (variant === "A" ? inVariantA : inVariantB);

export function redemptionRefusals(variant: Variant): readonly ErrorCode[] {
  return [
    "MERCHANT_NOT_IN_SCOPE",
    "LOCK_CANCELLED",
    "COUPON_VOIDED",
    "COUPON_REDEEMED",
    "COUPON_EXPIRED",
    "COUPON_LOCKED",
    "COUPON_NOT_RELEASED",
    "COUPON_NOT_YET_VALID",
    "CURRENCY_MISMATCH",
    "DISCOUNT_NOT_COMPUTABLE",
    "ORDER_BELOW_MINIMUM",
    // Only Variant A sends items.
    ...(variant === "A" ? (["NO_ELIGIBLE_ITEMS"] as const) : []),
  ];
}

export function redemptionResources(variant: Variant): readonly Resource[] {
  return variant === "A" ? ["merchant", "coupon"] : ["merchant", "coupon", "store", "terminal"];
}

export function redemptionArgs({ redemption_context, ...rest }: Values): Values {
  return { ...rest, items: (redemption_context as { items?: unknown } | undefined)?.items };
}
