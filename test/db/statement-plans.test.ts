// A business day is posted, closed, rendered, downloaded and verified by reading rows in proportion to its lines,
// whatever the planner knows about the tables.
import t, { type Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { verify } from "../../src/commands/statements.ts";
import { daySeconds, keepBusinessDays, listStatements, noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { countReads, stopAutovacuum } from "../support/count-reads.ts";
import { redeemWhole } from "../support/ledger.ts";
import { sequenceEvents } from "../support/sequence-events.ts";
import { startService } from "../support/service.ts";
import { waitUntil } from "../support/wait-until.ts";

// The lines of each day. The first is empty, so that its plans are made for empty tables and stay in use.
const days = [0, 110, 20_000];
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
    t.match(statement, { entries: lines, is_ready: true });
    for (const { differences } of await Array.fromAsync(verify(admin!))) t.strictSame(differences, []);
    const download = await by.get(`/v1/reconciliations/${date}/detail`);
    t.match(download, { status: 200, headers: { etag: `"${detail}"` } });
    for (const kind of ["detail", "summary"])
      await api!.rows("select * from gate.read_statement_page($1, $2, $3::text::date, $4, 0, $5)", [
        party!["tenant_id"],
        party!["party_id"],
        date,
        kind,
        lines,
      ]);
  }

  return { dba, sessions: [worker!, admin!, api!], closeDay, readDay };
}
