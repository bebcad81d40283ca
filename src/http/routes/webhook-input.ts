// A webhook belongs to a party. In Variant B that is the caller. In Variant A the call names it; the database requires
// that only if the tenant has several webhooks.
import { externalId } from "../fields.ts";

export const whose = { party: externalId.optional().describe("Whose webhook. Needed if the tenant has several.") };
