// The worker keeps statistics of every table in which the planner chooses between indexes, however few rows it has.
import t from "tap";
import { stopAutovacuum } from "../support/count-reads.ts";
import { fillEveryTable } from "../support/every-table.ts";
import { waitAtMost } from "../support/wait-until.ts";

// Small state of the service, read whole or by their only index.
const exempt = ["code_version", "currency", "event_gap", "master_key", "migration", "sequencer"];

t.test("Every table is analyzed when it gets its first rows, and again when it has doubled", async (t) => {
  const { session } = await fillEveryTable(t);
  await stopAutovacuum(session);
  const tables = await session.rows<{ name: string }>(
    `select relname::text as name from pg_class
     where relnamespace = 'core'::regnamespace and relkind = 'r' and relname <> all ($1) order by 1`,
    [exempt],
  );

  const countAnalyzes = async () =>
    (
      await session.rows<{ count: number }>(
        `select sum(pg_stat_get_analyze_count(oid))::int as count from pg_class
         where relnamespace = 'core'::regnamespace and relkind = 'r'`,
      )
    )[0]!.count;

  // The tables with more than twice the rows that the planner knows, as the worker leaves them.
  async function analyze(): Promise<string[]> {
    await session.rows("select pg_stat_force_next_flush()");
    const before = await countAnalyzes();
    const [done] = await session.rows<{ count: number }>("select jobs.analyze_grown_tables() as count");
    t.equal(done!.count, (await countAnalyzes()) - before, "as many as it returns");
    const stale: string[] = [];
    for (const { name } of tables) {
      const [row] = await session.rows<{ rows: number; known: number }>(
        `select (select count(*) from core.${name})::int as rows, reltuples::int as known
         from pg_class where oid = 'core.${name}'::regclass`,
      );
      if (row!.rows > 2 * Math.max(row!.known, 0)) stale.push(name);
    }
    return stale;
  }
  // The sessions of the service send their counts within ten seconds.
  const untilKnown = () => waitAtMost(20_000, async () => (await analyze()).length === 0, { everyMs: 100 });

  await untilKnown();
  t.strictSame(await analyze(), [], "the first rows");
  const readKnown = async () =>
    (
      await session.rows<{ rows: number }>(
        "select reltuples::int as rows from pg_class where oid = 'core.store'::regclass",
      )
    )[0]!.rows;
  const first = await readKnown();
  const insertInto = "insert into core.store (tenant_id, merchant_id, external_id)";
  await session.rows(`${insertInto} select s.tenant_id, s.merchant_id, 'more ' || s.store_id from core.store s`);
  await analyze();
  t.equal(await readKnown(), first, "twice the rows are not yet more than twice");
  await session.rows(`${insertInto} select s.tenant_id, s.merchant_id, 'one more' from core.store s limit 1`);
  t.strictSame(await analyze(), [], "more rows");
  t.equal(await readKnown(), 2 * first + 1);
});
