import { z } from "zod";
import { coupon, externalId, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

// A read that uses POST. request_id is optional; error answers repeat it.
const input = z.strictObject({ request_id: requestId.optional(), coupon, merchant: externalId });

export const query: Route = {
  operation: "query",
  method: "POST",
  path: "/v1/coupons/query",
  isWrite: false,
  reveals: "any code",
  schema: () => input,
};
