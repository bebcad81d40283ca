// The number of rows that the service reads does not grow with its tables: neither on a connection that planned its
// statements when the tables were empty, nor before they are analyzed. Times depend on the machine; these counts depend
// on the plans only.
import { hash } from "node:crypto";
import t, { type Test } from "tap";
import { verify } from "../../src/commands/statements.ts";
import type { Address } from "../../src/config/database-address.ts";
import { toPortal, type Reader } from "../../src/console/doors.ts";
import { pages as declared } from "../../src/console/pages/table.ts";
import { readRows } from "../../src/console/query.ts";
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { listStatements, moveToNoon } from "../support/business-days.ts";
import { countReads, readCounts, stopAutovacuum, type Reads } from "../support/count-reads.ts";
import { createDatabase, openScratchDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { newRequestId } from "../support/request-id.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { openGateSession, type GateCall, type GateRow } from "../support/sessions.ts";
import { dropDeliveries } from "../support/subscribers.ts";
import { startOwners } from "../support/webhook-owners.ts";
import { createWorkerSteps } from "../support/worker-steps.ts";
import { fillRedemptions } from "../tools/bench/fill.ts";
import { fillReports } from "../tools/bench/report-data.ts";
import { questions, readExamples, readQuestion, wideQuestions } from "../tools/bench/reports.ts";

function openAs(t: Test, { address }: Pick<Scenario, "address">, role?: string): Session {
  const session = openSession(address, { name: "coupon test", ...(role !== undefined && { role }) });
  t.teardown(() => session.end());
  return session;
}

/** A connection of the service with one credential. It sends groups of calls, and counts what a call reads. */
async function openGate(t: Test, world: Pick<Scenario, "address">, accessKey: string) {
  const { session, send } = await openGateSession(world, accessKey);
  t.teardown(() => session.end());
  const perform = (calls: GateCall[], isAlone = false) =>
    send(
      calls.map((call) => ({ nonce: newRequestId(), idempotency_key: newRequestId(), ...call })),
      isAlone,
    );

  async function count(call: GateCall, isAlone: boolean): Promise<{ answer: GateRow; reads: Reads }> {
    await session.run("begin");
    const before = await readCounts(session);
    const [answer] = await perform([call], isAlone);
    await session.run("set constraints all immediate");
    const after = await readCounts(session);
    await session.run("commit");
    return { answer: answer!, reads: { tables: after.tables - before.tables, rows: after.rows - before.rows } };
  }

  return { perform, count };
}

const merchant = "mch_a";

const asRead = { body_hash: null };
// Each list is of a merchant or a tenant with many entries. It shows two of them.
const lists: Record<string, [operation: string, args: object]> = {
  "list by order": ["list_redemptions", { merchant, order_id: "4711" }],
  "list of changes": ["list_redemptions", { merchant, limit: 2 }],
  "list of a period": [
    "list_redemptions",
    { merchant, limit: 2, from: "2020-01-01T00:00:00Z", to: "2098-01-01T00:00:00Z" },
  ],
  "list of an empty period": [
    "list_redemptions",
    { merchant, from: "2020-01-01T00:00:00Z", to: "2020-01-02T00:00:00Z" },
  ],
  "expanded redemptions": ["pull_events", { limit: 5, expand: true }],
};

/** Runs every operation of a till once. Returns the table scans and rows of each. */
async function runEachOnce({ count }: Awaited<ReturnType<typeof openGate>>, coupons: string[], isAlone: boolean) {
  const reads: Record<string, Reads> = {};
  async function one(operation: string, args: object, more: Partial<GateCall> = {}, name = operation): Promise<any> {
    const counted = await count({ operation, args, ...more }, isAlone);
    if (counted.answer.http_status !== 200) throw new Error(counted.answer.body);
    reads[name] = counted.reads;
    return JSON.parse(counted.answer.body);
  }
  const [first, second, third, fourth] = coupons as [string, string, string, string];
  const { redemption } = await one("redeem", { coupon: first, merchant, order_id: "4711" });
  await one("reverse", { redemption });
  for (const [coupon, next] of Object.entries({ [second]: "confirm", [third]: "cancel" })) {
    const lock = newRequestId();
    await one("lock", { coupon, merchant }, { request_id: lock });
    await one(next, { coupon, merchant, lock_request_id: lock });
  }
  await one("query", { coupon: second, merchant, order_amount: 20 }, asRead);
  await one("get_redemption", { redemption }, asRead);
  for (const [name, [operation, args]] of Object.entries(lists)) await one(operation, args, asRead, name);
  await one("void", { coupon: fourth, merchant });
  return reads;
}

// With isAnalyzed the planner knows that the tables are empty. Without, it knows nothing, and no autovacuum tells it.
for (const isAnalyzed of [true, false]) {
  const known = isAnalyzed ? "analyzed" : "not analyzed";
  t.test(`A call reads few rows of large tables that were ${known} while empty`, async (t) => {
    const world = await scenario(t);
    const dba = openAs(t, world);
    await stopAutovacuum(dba);
    if (isAnalyzed) await dba.run("vacuum analyze");
    const gate = await openGate(t, world, "ak_a");
    const program = countReads(openAs(t, world, "coupon_api"));
    /** The numbers of the codes on a page of an export, and how many rows it reads. */
    const readCodes = async (lookup: string, after: number) => {
      const [batch] = await dba.rows<{ tenant_id: number; batch_id: number }>(
        "select tenant_id, batch_id from core.coupon where lookup_hash = $1::text::uuid",
        [lookup],
      );
      const text = "select number from rules.read_export_page($1, $2, $3, 5)";
      const page = await program.rows<{ number: number }>(text, [batch!.tenant_id, batch!.batch_id, after]);
      return [page.map(({ number }) => number), program.takeRows()["rules.read_export_page"]];
    };
    const lookupsOf = async (count: number) => {
      const { id } = await world.makeBatch(world.a.maker, "tpl_fixed", count);
      const rows = await dba.rows<{ lookup: string }>(
        `select c.lookup_hash::text as lookup
         from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1`,
        [id],
      );
      return rows.map(({ lookup }) => lookup);
    };
    // The connection plans its statements now.
    const few = await lookupsOf(8);
    await world.steps.sequence();
    await runEachOnce(gate, few.slice(0, 4), false);
    await runEachOnce(gate, few.slice(4), true);
    await readCodes(few[0]!, 0);

    const many = await lookupsOf(1_500);
    for (let at = 8; at + 50 <= many.length; at += 50) {
      const group = many.slice(at, at + 50);
      const answers = await gate.perform(group.map((coupon) => ({ operation: "redeem", args: { coupon, merchant } })));
      t.ok(answers.every(({ http_status }) => http_status === 200));
    }
    await world.steps.sequence();
    const after = {
      together: await runEachOnce(gate, many.slice(0, 4), false),
      alone: await runEachOnce(gate, many.slice(4, 8), true),
    };
    t.strictSame(await readCodes(many[0]!, 700), [[701, 702, 703, 704, 705], 5], "a page of codes");
    const operations = ["cancel", "confirm", "lock", "redeem", "reverse", "void", "query", "get_redemption"];
    t.strictSame(Object.keys(after.together).toSorted(), [...operations, ...Object.keys(lists)].toSorted());
    for (const way of ["together", "alone"] as const) {
      for (const [operation, { tables, rows }] of Object.entries(after[way])) {
        // For a table that it knows to be empty, the planner finds every index that begins with the tenant equally
        // good. jobs.analyze_grown_tables ends this a second later; only redeem, lock and void must be right before.
        if (isAnalyzed && !["redeem", "lock", "void"].includes(operation)) continue;
        // The trigger of a voiding runs at commit with the settings of the session, and scans the few merchants.
        if (!isAnalyzed || operation !== "void") t.equal(tables, 0, `${operation}, ${way}: no table scan`);
        t.ok(rows <= 100, `${operation}, ${way}: ${rows} rows`);
      }
    }
  });
}

// The lines of each day. The first is empty, so that its plans are made for empty tables and stay in use.
const days = [0, 110, 2_200];
// The sequencer reads 3 rows for a line, with all its checks. A page reads up to 8: the entry, its redemption,
// reversal, coupon and batch, and what their names and amounts need.
const rowsPerLine = 12;
// Closing a day looks at all books and at the last events.
const rowsPerStep = 100;

for (const known of ["nothing", "that they were empty", "the first entries"] as const) {
  t.test(`Statements read rows in proportion to their lines when the planner knows ${known}`, async (t) => {
    const { dba, sessions, closeDay, readDay } = await openStatements(t);
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

async function openStatements(t: Test) {
  const world = await scenario(t);
  const dba = openAs(t, world);
  await stopAutovacuum(dba);
  const sessions = ["coupon_worker", "coupon_admin", "coupon_api"].map((role) => countReads(openAs(t, world, role)));
  const [worker, admin, api] = sessions as [(typeof sessions)[0], (typeof sessions)[0], (typeof sessions)[0]];
  const steps = createWorkerSteps(t, world, { database: worker });
  await moveToNoon(world, "pty_a");
  const [party] = await dba.rows("select tenant_id, party_id from core.party where external_id = 'pty_a'");
  // Opens the book.
  await world.makeBatch(world.a.maker, "tpl_fixed", 1);
  await steps.sequence();

  // isAnalyzing: as the worker does with tables that grow.
  async function closeDay(day: number, lines: number, isAnalyzing: boolean): Promise<void> {
    if (lines > 0) {
      const { id } = await world.makeBatch(world.a.maker, "tpl_fixed", Math.round(lines / 1.1));
      if (isAnalyzing) await dba.run("analyze");
      t.equal(await fillRedemptions(world, [id], { reversed: 10 }), lines);
      if (isAnalyzing) await dba.run("analyze");
    }
    await steps.sequence();
    await moveToNoon(world, "pty_a", day);
    await steps.closeDays();
    await steps.finishStatements();
    t.strictSame(steps.log, []);
  }

  async function readDay(lines: number): Promise<void> {
    const { date, ...statement } = (await listStatements(world)).at(-1)!;
    fits(t, statement, { entries: lines, is_ready: true });
    for (const { differences } of await Array.fromAsync(verify(admin))) t.strictSame(differences, []);
    for (const kind of ["detail", "summary"])
      await api.rows("select * from rules.read_statement_page($1, $2, $3::text::date, $4, 0, $5)", [
        party!["tenant_id"],
        party!["party_id"],
        date,
        kind,
        lines,
      ]);
  }

  return { dba, sessions, closeDay, readDay };
}

t.test("A page of the list reads few statements besides its own, whatever the planner knows", async (t) => {
  const world = await scenario(t, { mayBreakInvariants: true });
  const dba = openAs(t, world);
  await stopAutovacuum(dba);
  // Two tenants with 100 distributors each, which have closed every day of four months.
  await dba.run(`
    set session_replication_role = replica;
    insert into core.party overriding system value
    select y.*
    from (select distinct on (z.tenant_id) z as x from core.party z) o, generate_series(1001, 1100) n,
         jsonb_populate_record(o.x, jsonb_build_object('party_id', n, 'external_id', 'pty_' || n)) y;
    insert into core.ledger_book (tenant_id, party_id, open_on)
    select tenant_id, party_id, '2025-05-01' from core.party where party_id > 1000;
    insert into core.statement
    select p.tenant_id, p.party_id, '2025-01-01'::date + day, 1, true, now(), now(), 1, 'sha', 1, 1, 'sha'
    from core.party p, generate_series(0, 119) day where p.party_id > 1000 or p.external_id = 'pty_dist'`);
  for (const known of ["nothing", "everything"]) {
    if (known === "everything") await dba.run("analyze");
    const gates = { A: await openGate(t, world, "ak_a"), B: await openGate(t, world, "ak_dist") };
    const list = async (variant: "A" | "B", args: object) => {
      const call = { operation: "list_reconciliations", args, body_hash: null };
      const { answer, reads } = await gates[variant].count(call, true);
      const { reconciliations, next_cursor } = JSON.parse(answer.body) as {
        reconciliations: { business_date: string }[];
        next_cursor: string;
      };
      return { dates: reconciliations.map((one) => one.business_date), next: next_cursor, rows: reads.rows };
    };
    for (const [cursor, first, second] of [
      [undefined, "2025-01-01", "2025-01-02"],
      ["2025-02-28", "2025-03-01", "2025-03-02"],
    ]) {
      const a = await list("A", { limit: 1, cursor });
      t.strictSame([a.next, a.dates], [first, Array.from({ length: 100 }, () => first)]);
      // The 100 statements, their parties, and the 101 books.
      t.ok(a.rows < 1_000, `${a.rows} rows are read in Variant A, knowing ${known}`);
      const b = await list("B", { limit: 2, cursor });
      t.strictSame([b.next, b.dates], [second, [first, second]]);
      t.ok(b.rows < 20, `${b.rows} rows are read in Variant B, knowing ${known}`);
    }
  }
});

// Who asks a tenant with 2,000 batches for which of them, and how many it gets. One in eight is PENDING, and as many
// are COMPLETED. The shop is the distributor of the two oldest.
const pages: Record<"a" | "b", [accessKey: string, args: object, count: number][]> = {
  a: [
    ["ak_a", {}, 5],
    ["ak_a", { status: "ALLOCATED" }, 5],
    ["ak_a", { status: "PENDING" }, 5],
    ["ak_a", { template: "tpl_fixed" }, 5],
    ["ak_a", { template: "tpl_percent" }, 0],
    ["ak_a", { template: "tpl_percent", status: "COMPLETED" }, 0],
    ["ak_a_stranger", {}, 0],
  ],
  b: [
    ["ak_maker", {}, 5],
    ["ak_maker", { status: "ALLOCATED" }, 5],
    ["ak_maker", { status: "COMPLETED" }, 5],
    ["ak_maker", { template: "tpl_b" }, 5],
    ["ak_maker", { template: "tpl_b", status: "PENDING" }, 5],
    ["ak_maker", { template: "tpl_none" }, 0],
    ["ak_dist", {}, 5],
    ["ak_dist", { template: "tpl_b" }, 5],
    ["ak_shop", {}, 2],
    ["ak_shop", { template: "tpl_b", status: "ALLOCATED" }, 2],
    ["ak_shop", { template: "tpl_b", status: "PENDING" }, 0],
    ["ak_other", {}, 0],
    ["ak_other", { status: "COMPLETED" }, 0],
    ["ak_other", { template: "tpl_b" }, 0],
  ],
};

t.test("A page of batches reads no more than its own, whatever the planner knows", async (t) => {
  const world = await scenario(t, { mayBreakInvariants: true });
  const dba = openAs(t, world);
  await stopAutovacuum(dba);
  await dba.run("set session_replication_role = replica");
  for (const variant of ["a", "b"] as const) {
    const { maker, template } = world[variant];
    await dba.run("truncate core.batch cascade");
    await world.makeBatch(maker, template, 1);
    await dba.run(`
      insert into core.batch overriding system value
      select y.*
      from core.batch b, generate_series(1, 2000) n, jsonb_populate_record(b, jsonb_build_object(
        'batch_id', b.batch_id + n, 'external_id', b.external_id || n, 'request_id', n::text,
        'status', case n % 8 when 0 then 'PENDING' when 1 then 'COMPLETED' else 'ALLOCATED' end,
        'completed_at', case when n % 8 > 0 then b.completed_at end,
        'allocated_at', case when n % 8 > 1 then b.allocated_at end,
        'distributor_id', case when n between 2 and 3
          then (select party_id from core.party where external_id = 'pty_shop') else b.distributor_id end)) y`);
    for (const known of ["nothing", "everything"]) {
      if (known === "everything") await dba.run("vacuum analyze");
      for (const [accessKey, args, count] of pages[variant]) {
        const gate = await openGate(t, world, accessKey);
        const call = { operation: "list_batches", args: { limit: 5, ...args }, body_hash: null };
        const { answer, reads } = await gate.count(call, true);
        const what = `${accessKey} ${JSON.stringify(args)}, knowing ${known}`;
        t.equal(JSON.parse(answer.body).batches.length, count, what);
        // A batch with its parties and its template, those of the next page, and who calls.
        t.ok(reads.rows <= 12 * count + 30, `${what}: ${reads.rows} rows`);
      }
    }
  }
});

// Operation, arguments, and how many rows it may read.
const webhookCalls: [string, object, number][] = [
  // 100 attempts with their events.
  ["get_webhook", {}, 350],
  ["replay_events", { event_id: `evt_${"0".repeat(26)}` }, 30],
  // Before the feed begins: a replay reads on to its limit, here the 400 events of the feed.
  ["replay_events", { from: "2020-01-02T00:00:00Z", to: "2020-01-03T00:00:00Z" }, 900],
  ["replay_events", { from: "2098-01-01T00:00:00Z", to: "2099-01-01T00:00:00Z" }, 60],
  ["test_webhook", { event_type: "coupon.voided" }, 30],
  // 100 events with their pages, coupons, batches, templates and tenant.
  ["pull_events", { limit: 100, expand: true }, 900],
];

t.test(
  "get_webhook, replay_events, test_webhook, list_due_webhooks and expanded pulls read few rows of large tables",
  async (t) => {
    const { service: world, happen, sequence } = await startOwners(t);
    await stopAutovacuum(openAs(t, world));
    const gate = await openGate(t, world, "ak_b_s1");
    const countRows = async ([operation, args]: (typeof webhookCalls)[number]) => {
      const body_hash = /^(get|pull)/.test(operation) ? { body_hash: null } : {};
      return (await gate.count({ operation, args, ...body_hash }, true)).reads.rows;
    };

    for (const call of webhookCalls) await countRows(call);
    await happen("/b/s2", 400);
    await happen("/b/s1", 400);
    await world.owner.rows(
      `select jobs.record_deliveries(w.tenant_id, w.party_id, null, (
       select jsonb_agg(jsonb_build_object(
         'event_id', d.event_id, 'attempt', 1, 'http_status', 200, 'duration_ms', 1, 'is_taken', true))
       from core.delivery d where d.tenant_id = w.tenant_id and d.party_id = w.party_id))
     from core.webhook w
     where exists (select from core.delivery d where d.tenant_id = w.tenant_id and d.party_id = w.party_id)`,
    );
    await world.owner.rows(
      `insert into core.event (tenant_id, event_id, event_type, party_id, business_date, occurred_at, recorded_at)
     select p.tenant_id, rules.make_id(), 'reconciliation.ready', p.party_id, '2020-01-01', '2021-01-02', '2021-01-02'
     from core.party p join core.tenant t using (tenant_id), generate_series(1, 4000)
     where t.external_id = 'ten_b' and p.external_id like 'pty_s%'`,
    );
    await sequence();
    // Thousands of deliveries wait for a later attempt.
    await world.owner.rows("delete from core.test_delivery");
    await world.owner.rows("update core.delivery set next_attempt_at = clock_timestamp() + interval '1 hour'");
    const worker = countReads(openAs(t, world, "coupon_worker"));
    t.equal((await worker.rows("select from jobs.list_due_webhooks(32)")).length, 0);
    const { "jobs.list_due_webhooks": due } = worker.takeRows();
    t.ok(due! < 25, `list_due_webhooks: ${due} rows, at most 25`);
    await dropDeliveries(world);
    for (const call of webhookCalls) {
      const [rows, most] = [await countRows(call), call[2]];
      t.ok(rows <= most, `${JSON.stringify(call)}: ${rows} rows, at most ${most}`);
    }
  },
);

t.test("A step of clearing reads no more than it deletes needs, whatever the planner knows", async (t) => {
  const world = await scenario(t, { mayBreakInvariants: true });
  const dba = openAs(t, world);
  await stopAutovacuum(dba);
  await moveToNoon(world, "pty_a");
  for (const { maker, template } of [world.a, world.b]) {
    const { id } = await world.makeBatch(maker, template, 1_000);
    await fillRedemptions(world, [id], { reversed: 10 });
  }
  await world.steps.sequence();
  await moveToNoon(world, "pty_a", 1);
  await world.steps.close();
  await dba.run("update core.tenant set home = 2, left_at = now() where external_id = 'ten_a'");
  let steps = 0;
  for (let done = 1; done > 0; steps += 1) {
    if (steps === 50) await dba.run("vacuum analyze");
    const before = await readCounts(dba);
    [{ done }] = (await dba.rows("select jobs.clear_departed('0', 10) as done")) as [{ done: number }];
    const { tables, rows } = await readCounts(dba);
    // Of each coupon: itself, its redemption, reversal and entries, each found and then deleted.
    if (tables > before.tables || rows - before.rows > 150) t.fail(`step ${steps}: ${rows - before.rows} rows`);
  }
  t.ok(steps > 100, `${steps} steps`);
});

// The planner knows the table, and prefers to sort: the pages of four feeds take turns.
t.test("A page of a feed reads no more than the events of the page need", async (t) => {
  const session = await openScratchDatabase(t);
  await session.run(
    `set session_replication_role = replica;
     set random_page_cost = 4;
     set plan_cache_mode = force_generic_plan;
     set enable_seqscan = off;
     insert into core.feed_page (tenant_id, party_id, first_position, sequenced_at, event_seqs)
     select 1, n % 4, n / 4 + 1, now(), array[n] from generate_series(0, 3999) n;
     analyze core.feed_page;
     begin`,
  );
  const before = await readCounts(session);
  const [page] = await session.rows<{ event_seqs: bigint[] }>("select event_seqs from rules.read_feed(1, 2, 500, 3)");
  const { rows } = await readCounts(session);
  t.strictSame(page!.event_seqs.map(Number), [2_002, 2_006, 2_010], "positions 501 to 503");
  // The page where the list begins, and up to one more than the list has events.
  t.ok(rows - before.rows <= 5, `${rows - before.rows} rows`);
  await session.run("rollback");
});

// On tables that were never analyzed, and again after analyze. A hundredth of the size of docs/database.md.
t.test("Each question to the reports reads rows in proportion to what it is about", async (t) => {
  const { address, drop } = await createDatabase({ mayBreakInvariants: true });
  t.teardown(drop);
  const dba = openAs(t, { address });
  const reader = openAs(t, { address }, "coupon_report");
  // As the embedded server has it: an index is preferred to a whole table, as it should be on anything but a disk.
  await reader.run("set random_page_cost = 1.1; set statement_timeout = '60s'");
  await fillReports(address, 10_000);
  const examples = await readExamples(reader);

  for (const hasStatistics of [false, true]) {
    if (hasStatistics) await dba.run("vacuum analyze");
    const [table] = await dba.rows(
      "select reltuples >= 0 as known from pg_class where oid = 'core.ledger_entry'::regclass",
    );
    t.equal(table!["known"], hasStatistics, hasStatistics ? "analyzed" : "never analyzed");
    for (const question of questions.filter(({ needsStatistics }) => hasStatistics || !needsStatistics)) {
      const { answer, about, read, scans } = await readQuestion(reader, question, examples);
      const most = 8 * about + (question.besides ?? 20);
      t.ok(answer > 0 && read <= most, `${question.sql}: ${answer} rows from ${read}, at most ${most}`, { scans });
    }
    // Of these tables, only the rows of open days may be read, and the live locks.
    const large = ["coupon", "redemption", "reversal", "ledger_entry", "posting_page", "request", "event"];
    const [open] = await reader.rows<{ entries: number; locks: number }>(
      `select sum(redemption_count + reversal_count)::int as entries,
              (select count(*) from report.redemption where stored_status = 'LOCKED')::int as locks
       from report.daily where not is_closed`,
    );
    t.ok(open!.entries > 0);
    for (const sql of wideQuestions) {
      await reader.run("begin");
      const before = await readCounts(reader, large);
      t.not((await reader.rows(sql)).length, 0, sql);
      const read = (await readCounts(reader, large)).rows - before.rows;
      await reader.run("commit");
      const most = 4 * open!.entries + 2 * open!.locks + 20;
      t.ok(read <= most, `${sql}: ${read} rows, at most ${most}`);
    }
    // Pages show the same and less, to staff and to companies.
    const most = (rows: number) => 12 * rows + 4 * open!.entries + 2 * open!.locks + 40;
    if (hasStatistics) await countPages(t, { address, examples, large, most });
    // A plan does not show what a function reads.
    const reads = countReads(reader);
    for (const id of [examples["coupon"], examples["entry"]]) {
      const keys = await reads.rows("select unnest(report.find_keys($1)) as key", [id]);
      const { "report.find_keys": read } = reads.takeRows();
      t.ok(keys.length > 0 && read! <= 8 * keys.length, `${id}: ${keys.length} keys from ${read} rows`);
    }
    for (const call of ["find_history", "find_positions", "find_deliveries"]) {
      const rows = await reads.rows(`select * from report.${call}($1)`, [examples["coupon"]]);
      const read = reads.takeRows()[`report.${call}`]!;
      // Of each event, the next 200 attempts of the subscriber.
      const ofEach = call === "find_deliveries" ? 240 : 40;
      t.ok(read <= ofEach * rows.length + 40, `${call}: ${rows.length} rows from ${read}`);
    }
  }
});

type PageParts = {
  address: Address;
  examples: Record<string, string>;
  /** The tables that grow with each movement. */
  large: string[];
  /** Of them, for a block that shows so many rows. */
  most: (rows: number) => number;
};

/** Reads each block of each page as the console does, for staff, a distributor and an operator of merchants. */
async function countPages(t: Test, { address, examples, large, most }: PageParts): Promise<void> {
  const dba = openAs(t, { address });
  const [party, merchant] = ["pty_north", "mch_7"];
  const business_date = examples["day"]!;
  const values = {
    ...examples,
    tenant: "ten_big",
    batch: "bat_0",
    distributor: party,
    subscriber: party,
    party,
    merchant,
    business_date,
    id: "req-777",
    invariant: "event is in one table",
  };
  for (const company of [null, party, "pty_shop"]) {
    const reader = openAs(t, { address }, company === null ? "coupon_console" : "coupon_portal");
    await reader.run("set random_page_cost = 1.1");
    if (company !== null) {
      await dba.run(`
        with c as (
          insert into core.credential (tenant_id, access_key, party_id, sealed_secret, secret_hash)
          select p.tenant_id, 'ak_${company}', p.party_id, '\\x00', '\\x00'
          from core.party p join core.tenant t using (tenant_id)
          where t.external_id = 'ten_big' and p.external_id = '${company}'
          returning tenant_id, credential_id)
        insert into core.console_session (token_hash, name, signed_in_at, expires_at, tenant_id, credential_id)
        select sha256('${company}'), '${company}', now(), now() + interval '1 hour', tenant_id, credential_id from c`);
      await reader.run(`set coupon.session = '${hash("sha256", company)}'`);
    }
    let shown = 0;
    const counted: Reader = {
      async rows<Row>(text: string, params?: readonly unknown[]) {
        await reader.run("begin");
        const before = await readCounts(reader, large);
        const rows = await reader.rows<Row>(company === null ? text : toPortal(text), params);
        const read = (await readCounts(reader, large)).rows - before.rows;
        await reader.run("commit");
        shown += rows.length;
        // Of requests by their time, a BRIN index reads a range of blocks.
        const besides = text.includes("request\n") ? 1_000 : 0;
        t.ok(read <= most(rows.length) + besides, `${company}: ${rows.length} rows from ${read}, ${text}`);
        return rows;
      },
    };
    for (const page of company === null ? declared.staff : declared.company)
      for (const block of page.blocks)
        await readRows(counted, { block, filters: [], values }, { cursor: null, limit: 50 });
    t.ok(shown > 100, `${company}: ${shown} rows`);
  }
}
