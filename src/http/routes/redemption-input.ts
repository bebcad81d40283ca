// The input of lock and redeem, and their refusals. Both differ between the variants. A query may have the order too.
import { z } from "zod";
import { signedAmount } from "../../formats/field-types.ts";
import {
  amount,
  coupon,
  currency,
  externalId,
  label,
  optional,
  optionalText,
  printable,
  requestId,
} from "../fields.ts";
import type { ErrorCode, Resource } from "../errors.ts";
import type { Variant } from "../../gate/gate.ts";
import type { Values } from "../route.ts";

const order = {
  coupon,
  merchant: externalId,
  order_amount: optional(amount).describe(
    "The total of the order. Required if the discount is a percentage or has a minimum.",
  ),
  currency: optionalText(currency)
    .meta({ pattern: "^(?:[A-Z]{3}|\\s*)$" })
    .describe("Without it: the currency of the template."),
};
const grant = {
  request_id: requestId,
  ...order,
  order_id: optionalText(printable(128)).describe("Your number for the order."),
};
// A read that uses POST. request_id is optional; error answers repeat it.
const question = { request_id: optional(requestId), ...order };

// In JSON Schema: a text that is neither absent nor null nor blank.
function isGiven(name: string): object {
  return { required: [name], properties: { [name]: { type: "string", pattern: "\\S" } } };
}

const item = z.strictObject({
  sku: optional(printable(128)),
  quantity: optional(signedAmount),
  amount: optional(signedAmount).describe("The total of the line; negative for a returned one."),
});

// Further fields of redemption_context have no effect, but a retry must repeat them.
const placeInVariantA = {
  store: optional(label),
  terminal: optional(label),
  redemption_context: optional(z.looseObject({ items: optional(z.array(item)) })).describe(
    "Further fields beside items have no effect, but a repeat must have the same ones.",
  ),
};

const inVariantA = <F extends z.ZodRawShape>(fields: F) => z.strictObject({ ...fields, ...placeInVariantA });
const inVariantB = <F extends z.ZodRawShape>(fields: F) =>
  z
    .strictObject({ ...fields, store: optionalText(externalId), terminal: optionalText(externalId) })
    .refine(
      ({ store, terminal }: { store?: unknown; terminal?: unknown }) => terminal === undefined || store !== undefined,
      {
        path: ["terminal"],
        error: "needs a store",
      },
    )
    .meta({ not: { allOf: [isGiven("terminal"), { not: isGiven("store") }] } });

type Schemas = Record<Variant, z.ZodType<Values>>;
const ofGrant: Schemas = { A: inVariantA(grant), B: inVariantB(grant) };
const ofQuestion: Schemas = { A: inVariantA(question), B: inVariantB(question) };

export const redemptionSchema = (variant: Variant): z.ZodType<Values> => ofGrant[variant];
export const querySchema = (variant: Variant): z.ZodType<Values> => ofQuestion[variant];

export function redemptionRefusals(variant: Variant): readonly ErrorCode[] {
  return [
    "MERCHANT_NOT_IN_SCOPE",
    "LOCK_CANCELLED",
    "BATCH_SUSPENDED",
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
