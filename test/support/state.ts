// Fingerprints of the tables, to show that something changed nothing.
import type { Database } from "../../src/database/types.ts";

// Omits nonces, because every call spends one. Omits the records of requests by default, because a refusal is recorded
// too. The number of rows tells a deletion, and the latest transaction among them any other change.
export async function readState(owner: Database, { withRequests = false } = {}): Promise<Record<string, string>> {
  const tables = await owner.rows<{ name: string }>(
    `select c.relname as name from pg_class c
     where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' and c.relname <> 'nonce'
       and ($1 or c.relname <> 'request')`,
    [withRequests],
  );
  const parts = tables.map(
    ({ name }) =>
      `select '${name}' as name, concat(count(*), ' ', max(xmin::text::bigint)) as state from core."${name}"`,
  );
  const rows = await owner.rows<{ name: string; state: string }>(parts.join(" union all "));
  return Object.fromEntries(rows.map(({ name, state }) => [name, state]));
}
