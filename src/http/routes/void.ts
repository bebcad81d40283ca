import { z } from "zod";
import { coupon, externalId, requestId, text } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ request_id: requestId, coupon, merchant: externalId, reason: text(500).optional() });

export const voidCoupon: Route = {
  operation: "void",
  method: "POST",
  path: "/v1/coupons/void",
  isWrite: true,
  reveals: "any code",
  schema: () => input,
};
