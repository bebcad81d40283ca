// A webhook belongs to a party. In Variant B, the party is the caller. In Variant A, the call names the party; the
// database requires this only if the tenant has several webhooks.
import { externalId, optional } from "../fields.ts";

const about = "Whose webhook. Needed if the tenant has several.";

// In a query and in a body.
export const whoseIsAsked = { party: externalId.optional().describe(about) };
export const whose = { party: optional(externalId).describe(about) };
