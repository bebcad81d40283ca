import { z } from "zod";
import { madeId, ok } from "../answer-fields.ts";
import { externalId, optionalText, printable, requestId } from "../fields.ts";
import type { Route } from "../route.ts";

const input = z.strictObject({ request_id: requestId, redemption: externalId, reason: optionalText(printable(500)) });

const answer = z.object({ ok, redemption: madeId("red"), reversal: madeId("rvs"), status: z.literal("REVERSED") });

export const reverse: Route = {
  operation: "reverse",
  summary: "Reverses a completed redemption in full.",
  description:
    "For example when goods are returned. The coupon stays REDEEMED, unless its template says that it can be " +
    "used again.",
  method: "POST",
  path: "/v1/redemptions/reverse",
  isWrite: true,
  schema: () => input,
  answer: () => answer,
  refusals: () => ["REDEMPTION_NOT_REVERSIBLE", "REDEMPTION_REVERSED"],
  resources: () => ["redemption"],
};
