// What the commands of webhooks.ts and webhook-test.ts share.
import type { MasterKeys } from "../crypto/keys.ts";
import type { Database } from "../database/types.ts";

export type Context = { database: Database; keys: MasterKeys };

export const tenant = { about: "the tenant, ten_…" };
export const party = { about: "the party, pty_…" };
