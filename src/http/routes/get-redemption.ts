import { z } from "zod";
import { ok } from "../answer-fields.ts";
import { externalId } from "../fields.ts";
import type { Route } from "../route.ts";
import { redemption } from "./redemption-answer.ts";

const input = z.strictObject({ redemption: externalId });
const answer = z.object({ ok, redemption: redemption.meta({ id: "Redemption" }) });

export const getRedemption: Route = {
  operation: "get_redemption",
  summary: "Shows a redemption.",
  description: "Everyone who may act for its merchant sees it. What does not apply is null.",
  method: "GET",
  path: "/v1/redemptions/{redemption}",
  isWrite: false,
  schema: () => input,
  answer: () => answer,
  resources: () => ["redemption"],
};
