import { z } from "zod";
import { coupon, externalId, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ request_id: requestId, lock_request_id: requestId, coupon, merchant: externalId });

export const confirm: Route = {
  operation: "confirm",
  method: "POST",
  path: "/v1/coupons/confirm",
  isWrite: true,
  reveals: "own lock",
  schema: () => input,
};
