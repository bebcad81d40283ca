// A webhook belongs to a party. In Variant B, the party is the caller. In Variant A, the call names the party; the
// database requires this only if the tenant has several webhooks.
import { externalId } from "../fields.ts";

export const whose = { party: externalId.optional().describe("Whose webhook. Needed if the tenant has several.") };
