// A business day is posted, closed, rendered, downloaded and verified by reading rows in proportion to its lines,
// whatever the planner knows about the tables.
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { verify } from "../../src/commands/statements.ts";
import { daySeconds, keepBusinessDays, listStatements, noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { countReads, stopAutovacuum } from "../support/count-reads.ts";
import { fits } from "../support/fits.ts";
import { redeemWhole } from "../support/ledger.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { startService } from "../support/service.ts";
import { waitUntil } from "../support/wait-until.ts";

// The lines of each day. The first is empty, so that its plans are made for empty tables and stay in use.
const days = [0, 110, 10_000];
// The sequencer reads 3 rows for a line, with all its checks. A page reads up to 8: the entry, its redemption,
// reversal, coupon and batch, and what their names and amounts need.
const rowsPerLine = 12;
// Closing a day looks at all books and at the last events.
const rowsPerStep = 100;

for (const known of ["nothing", "that they were empty", "the first entries"] as const) {
  t.test(`Statements read rows in proportion to their lines when the planner knows ${known}`, async (t) => {
    const { dba, sessions, closeDay, readDay } = await open(t);
    if (known === "that they were empty") await dba.run("vacuum analyze");
    for (const [index, lines] of days.entries()) {
      await closeDay(index + 1, lines, known === "that they were empty");
      await readDay(lines);
      for (const [name, rows] of sessions.flatMap((session) => Object.entries(session.takeRows()))) {
        // verify reads the earlier days again
        const read = name.startsWith("admin") ? days.slice(0, index + 1).reduce((sum, count) => sum + count, 0) : lines;
        t.ok(rows <= read * rowsPerLine + rowsPerStep, `${name} reads ${rows} rows for ${read} lines`);
      }
      // A large day could take hours.
      if (!t.passing()) return;
      if (known === "the first entries" && lines > 0) await dba.run("vacuum analyze");
    }
  });
}

t.test("A page of the list reads few statements besides its own, whatever the planner knows", async (t) => {
  const service = await startService(t, undefined, { mayBreakInvariants: true });
  const dba = openSession(service.address, { name: "coupon test" });
  t.teardown(() => dba.end());
  await stopAutovacuum(dba);
  // Two tenants with 100 distributors each, which have closed every day of a year.
  await dba.run(`
    set session_replication_role = replica;
    insert into core.party overriding system value
    select y.*
    from (select distinct on (z.tenant_id) z as x from core.party z) o, generate_series(1001, 1100) n,
         jsonb_populate_record(o.x, jsonb_build_object('party_id', n, 'external_id', 'pty_' || n)) y;
    insert into core.ledger_book (tenant_id, party_id, open_on)
    select tenant_id, party_id, '2026-01-01' from core.party where party_id > 1000;
    insert into core.statement
    select p.tenant_id, p.party_id, '2025-01-01'::date + day, 1, true, now(), now(), 1, 'sha', 1, 1, 'sha'
    from core.party p, generate_series(0, 364) day where p.party_id > 1000`);
  const reads = countReads(dba);
  const list = async (variant: "A" | "B", args: object) => {
    const [tenant] = await dba.rows<{ id: number }>("select tenant_id as id from core.tenant where variant = $1", [
      variant,
    ]);
    const call = { tenant_id: tenant!.id, variant, caller_id: variant === "A" ? 0 : 1_050, args };
    const [answer] = await reads.rows<{ dates: string[]; next: string }>(
      `select array(select json_array_elements(a.body::json -> 'reconciliations') ->> 'business_date') as dates,
              a.body::json ->> 'next_cursor' as next
       from api.list_reconciliations(jsonb_populate_record(null::core.call, $1::text::jsonb)) a`,
      [JSON.stringify(call)],
    );
    return { ...answer!, rows: reads.takeRows()["api.list_reconciliations"]! };
  };
  for (const known of ["nothing", "everything"]) {
    if (known === "everything") await dba.run("analyze");
    for (const cursor of [undefined, "2025-06-30"]) {
      const first = cursor === undefined ? "2025-01-01" : "2025-07-01";
      const a = await list("A", { limit: 1, cursor });
      t.strictSame([a.next, a.dates], [first, Array.from({ length: 100 }, () => first)]);
      // The 100 statements, their parties, and the 101 books.
      t.ok(a.rows < 1_000, `${a.rows} rows are read in Variant A, knowing ${known}`);
      const b = await list("B", { limit: 2, cursor });
      const second = first.replace(/01$/, "02");
      t.strictSame([b.next, b.dates], [second, [first, second]]);
      t.ok(b.rows < 20, `${b.rows} rows are read in Variant B, knowing ${known}`);
    }
  }
});

async function open(t: Test) {
  const service = await startService(t);
  const openAs = (role?: string) => {
    const session = openSession(service.address, { name: "coupon test", ...(role !== undefined && { role }) });
    t.teardown(() => session.end());
    return session;
  };
  const dba = openAs();
  await stopAutovacuum(dba);
  const [worker, admin, api] = [openAs("coupon_worker"), openAs("coupon_admin"), openAs("coupon_api")].map(countReads);
  const { closerOn, errors } = await keepBusinessDays(t, service);
  const closer = closerOn(worker!);
  const by = service.as("ak_a");
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  const [party] = await dba.rows("select tenant_id, party_id from core.party where external_id = 'pty_a'");
  // Opens the book.
  await service.makeBatch(by, "tpl_fixed", 1);
  await sequenceEvents(worker!);

  // isAnalyzing: the worker's analyze runs too, as it does every second.
  async function closeDay(day: number, lines: number, isAnalyzing: boolean): Promise<void> {
    if (lines > 0) {
      const { id } = await service.makeBatch(by, "tpl_fixed", Math.round(lines / 1.1));
      if (isAnalyzing) await untilKnown("coupon", lines / 1.1);
      t.equal(await redeemWhole(service, id, "mch_a"), lines);
    }
    if (isAnalyzing && lines > 0) await untilKnown("ledger_entry", lines);
    await sequenceEvents(worker!);
    await setZone(service, "pty_a", zoneOf(offset + day * daySeconds));
    await closer.closeDays();
    await closer.finishStatements();
    t.strictSame(errors, []);
  }

  // Sessions send their counts of rows within ten seconds.
  async function untilKnown(table: string, rows: number): Promise<void> {
    await waitUntil(`statistics of ${table}`, async () => {
      await worker!.rows("select jobs.analyze_grown_tables()");
      const [known] = await dba.rows("select reltuples >= $2 as enough from pg_class where oid = $1::text::regclass", [
        `core.${table}`,
        rows,
      ]);
      return known!["enough"];
    });
  }

  async function readDay(lines: number): Promise<void> {
    const { date, detail, ...statement } = (await listStatements(service)).at(-1)!;
    fits(t, statement, { entries: lines, is_ready: true });
    for (const { differences } of await Array.fromAsync(verify(admin!))) t.strictSame(differences, []);
    const download = await by.get(`/v1/reconciliations/${date}/detail`);
    fits(t, download, { status: 200, headers: { etag: `"${detail}"` } });
    for (const kind of ["detail", "summary"])
      await api!.rows("select * from rules.read_statement_page($1, $2, $3::text::date, $4, 0, $5)", [
        party!["tenant_id"],
        party!["party_id"],
        date,
        kind,
        lines,
      ]);
  }

  return { dba, sessions: [worker!, admin!, api!], closeDay, readDay };
}
