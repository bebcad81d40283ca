// The worker keeps statistics of every table of core, however few rows it has.
import t from "tap";
import type { Address } from "../../src/config/database-address.ts";
import { openSession, sqlState } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { analyzeGrownTables } from "../support/sequence-events.ts";
import { stopAutovacuum } from "../support/count-reads.ts";
import { fillEveryTable } from "../support/every-table.ts";
import { waitAtMost } from "../support/wait-until.ts";

// Written before the database was cloned: a clone does not count these rows.
const seeded = ["cell", "code_version", "currency", "invariant_check", "migration", "sequencer"];

let session: Session;
let address: Address;
t.before(async () => {
  const filled = await fillEveryTable(t);
  ({ session } = filled);
  ({ address } = filled.world);
  await stopAutovacuum(session);
  await session.run("set lock_timeout = '5s'");
});

async function readNumber(text: string): Promise<number> {
  const [row] = await session.rows<{ number: number }>(`select (${text})::int as number`);
  return row!.number;
}
const countAnalyzes = () => readNumber("select sum(analyze_count) from pg_stat_user_tables where schemaname = 'core'");
const readKnown = (table: string) => readNumber(`select reltuples from pg_class where oid = 'core.${table}'::regclass`);

// Another text once the table has new statistics. A count of analyzes would not do: it stays after a rollback.
const readVersion = (table: string) =>
  readNumber(`select max(xmin::text::bigint) from pg_statistic where starelid = 'core.${table}'::regclass`);

const insertInto = "insert into core.store (tenant_id, merchant_id, external_id)";

t.test("Every table is analyzed when it gets its first rows, and again when it has doubled", async (t) => {
  const tables = await session.rows<{ name: string }>(
    `select relname::text as name from pg_class
     where relnamespace = 'core'::regnamespace and relkind = 'r' and relname <> all ($1) order by 1`,
    [seeded],
  );

  // The tables with more than twice the rows that the planner knows, as the worker leaves them.
  async function analyze(): Promise<string[]> {
    await session.rows("select pg_stat_force_next_flush()");
    const before = await countAnalyzes();
    const count = await analyzeGrownTables(session);
    t.equal((await countAnalyzes()) - before, count, "as many as it returns");
    const stale: string[] = [];
    for (const { name } of tables) {
      const rows = await readNumber(`select count(*) from core.${name}`);
      if (rows > 2 * Math.max(await readKnown(name), 0)) stale.push(name);
    }
    return stale;
  }
  // The sessions of the service send their counts within ten seconds.
  await waitAtMost(20_000, async () => (await analyze()).length === 0, { everyMs: 100 });
  t.strictSame(await analyze(), [], "the first rows");
  const first = await readKnown("store");
  await session.rows(`${insertInto} select s.tenant_id, s.merchant_id, 'more ' || s.store_id from core.store s`);
  await analyze();
  t.equal(await readKnown("store"), first, "twice the rows are not yet more than twice");
  await session.rows(`${insertInto} select s.tenant_id, s.merchant_id, 'one more' from core.store s limit 1`);
  t.strictSame(await analyze(), [], "more rows");
  t.equal(await readKnown("store"), 2 * first + 1);
});

async function doubleStoresAndTerminals(word: string): Promise<void> {
  for (let times = 0; times < 2; times += 1) {
    await session.rows(`${insertInto} select tenant_id, merchant_id, $1 || store_id from core.store`, [word + times]);
    await session.rows("insert into core.terminal select tenant_id, store_id, $1 || external_id from core.terminal", [
      word + times,
    ]);
  }
  await session.rows("select pg_stat_force_next_flush()");
}

t.test("A table that another session locks as vacuum does is analyzed later, and the others at once", async (t) => {
  const vacuum = openSession(address, { name: "vacuum" });
  t.teardown(() => vacuum.end());
  await doubleStoresAndTerminals("locked ");
  const before = { store: await readVersion("store"), terminal: await readVersion("terminal") };
  await vacuum.run("begin; lock table core.store in share update exclusive mode");
  t.equal(await analyzeGrownTables(session).catch(sqlState), 1);
  t.equal(await readVersion("store"), before.store);
  t.not(await readVersion("terminal"), before.terminal);
  await vacuum.run("commit");
  t.equal(await analyzeGrownTables(session), 1);
  t.not(await readVersion("store"), before.store);
});

t.test("A table whose analyze fails holds up no other", async (t) => {
  await doubleStoresAndTerminals("failing ");
  const before = await readVersion("store");
  const rule = (body: string) =>
    session.run(`create or replace function core.trap(p text) returns text language plpgsql immutable as
      'begin ${body} end'`);
  await rule("return p;");
  await session.run("create index trap on core.terminal (core.trap(external_id))");
  await rule("raise division_by_zero;");
  t.teardown(() => session.run("drop index core.trap; drop function core.trap"));
  const isStoreAnalyzed = async () => {
    await analyzeGrownTables(session).catch(() => {});
    return (await readVersion("store")) !== before;
  };
  t.not(await waitAtMost(20_000, isStoreAnalyzed, { everyMs: 0 }), null);
});
