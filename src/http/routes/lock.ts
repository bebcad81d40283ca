import { redemptionArgs, redemptionSchema } from "./redemption-input.ts";
import type { Route } from "../route.ts";

export const lock: Route = {
  operation: "lock",
  method: "POST",
  path: "/v1/coupons/lock",
  isWrite: true,
  reveals: "any code",
  schema: redemptionSchema,
  args: redemptionArgs,
};
