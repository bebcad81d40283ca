// The input of lock and redeem, which differs between the variants.
import { z } from "zod";
import { amount, coupon, currency, externalId, label, printable, requestId } from "../fields.ts";
import type { Variant } from "../../gate/gate.ts";
import type { Values } from "../route.ts";

const common = {
  request_id: requestId,
  coupon,
  merchant: externalId,
  order_amount: amount.optional(),
  currency: currency.optional(),
  order_id: printable(128).optional(),
};

const item = z.strictObject({
  sku: printable(128).optional(),
  quantity: amount.optional(),
  amount: amount.optional(),
});

// Further fields of redemption_context have no effect, but a retry must repeat them.
const inVariantA = z.strictObject({
  ...common,
  store: label.optional(),
  terminal: label.optional(),
  redemption_context: z.looseObject({ items: z.array(item).optional() }).optional(),
});

const inVariantB = z
  .strictObject({ ...common, store: externalId.optional(), terminal: externalId.optional() })
  .refine((value) => value.terminal === undefined || value.store !== undefined, {
    path: ["terminal"],
    error: "needs a store",
  });

export const redemptionSchema = (variant: Variant): z.ZodType<Values> => (variant === "A" ? inVariantA : inVariantB);

export function redemptionArgs({ redemption_context, ...rest }: Values): Values {
  return { ...rest, items: (redemption_context as { items?: unknown } | undefined)?.items };
}
