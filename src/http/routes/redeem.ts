import { redemptionArgs, redemptionSchema } from "./redemption-input.ts";
import type { Route } from "../route.ts";

export const redeem: Route = {
  operation: "redeem",
  method: "POST",
  path: "/v1/coupons/redeem",
  isWrite: true,
  reveals: "any code",
  schema: redemptionSchema,
  args: redemptionArgs,
};
