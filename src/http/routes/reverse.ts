import { z } from "zod";
import { externalId, requestId, text } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ request_id: requestId, redemption: externalId, reason: text(500).optional() });

export const reverse: Route = {
  operation: "reverse",
  method: "POST",
  path: "/v1/redemptions/reverse",
  isWrite: true,
  reveals: "nothing",
  schema: () => input,
};
