import { z } from "zod";
import { coupon, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ request_id: requestId, lock_request_id: requestId, coupon });

export const cancel: Route = {
  operation: "cancel",
  method: "POST",
  path: "/v1/coupons/cancel",
  isWrite: true,
  reveals: "own lock",
  schema: () => input,
};
