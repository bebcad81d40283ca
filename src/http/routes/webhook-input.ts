// A webhook belongs to a party. In Variant B, the party is the caller. In Variant A, the call names the party; the
// database requires this only if the tenant has several webhooks.
import { externalId, optional } from "../fields.ts";

const about = "Whose webhook. Needed if the tenant has several.";

export const partyInQuery = { party: externalId.optional().describe(about) };
export const partyInBody = { party: optional(externalId).describe(about) };
