// Counts the rows that statements read from our tables, with every row that a filter then throws away. Times depend on
// the machine; these counts depend on the plans only.
import type { Database, Session } from "../../src/database/types.ts";

export type Reads = { tables: number; rows: number };

/**
 * What the session has read since it last sent its statistics. It never sends them inside a transaction. `of`: from
 * these tables only. A scan of core.sequencer or core.cell, which have one row, is no scan of a table.
 */
export async function readCounts(session: Session, of: string[] | null = null): Promise<Reads> {
  const [reads] = await session.rows<Reads>(
    `select (sum(s.seq_scan) filter (where s.relname not in ('sequencer', 'cell')))::int as tables,
             sum(s.seq_tup_read + s.idx_tup_fetch)::int as rows
     from pg_stat_xact_user_tables s where s.schemaname = 'core' and ($1::text[] is null or s.relname = any ($1))`,
    [of],
  );
  return reads!;
}

/** A database for programs that counts the rows that each function reads. */
export function countReads(session: Session): Database & { takeRows(): Record<string, number> } {
  let rows: Record<string, number> = {};
  return {
    ...session,
    async rows<T>(text: string, params?: readonly unknown[]): Promise<T[]> {
      await session.run("begin");
      const before = await readCounts(session);
      const result = await session.rows<T>(text, params);
      const after = await readCounts(session);
      await session.run("commit");
      const name = /(?:jobs|gate|admin|api|rules|report|console|portal)\.\w+/.exec(text)![0];
      rows[name] = (rows[name] ?? 0) + after.rows - before.rows;
      return result;
    },
    takeRows() {
      const taken = rows;
      rows = {};
      return taken;
    },
  };
}

/** Lets only the test decide what the planner knows: autovacuum would analyze a table at any moment. */
export async function stopAutovacuum(dba: Session): Promise<void> {
  const tables = await dba.rows<{ name: string }>(
    "select oid::regclass::text as name from pg_class where relnamespace = 'core'::regnamespace and relkind = 'r'",
  );
  await dba.run(tables.map(({ name }) => `alter table ${name} set (autovacuum_enabled = off);`).join("\n"));
}
