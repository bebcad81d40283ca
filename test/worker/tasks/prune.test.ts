// Retention: rows are deleted when their days are over, in steps, and not earlier.
import t, { type Test } from "tap";
import { readConfig } from "../../../src/config/config.ts";
import { connect, openSession } from "../../../src/database/connect.ts";
import type { Session } from "../../../src/database/types.ts";
import { createOldRowPruner } from "../../../src/worker/tasks/prune.ts";
import { fits } from "../../support/fits.ts";
import { startService, type Running } from "../../support/service.ts";
import { makeStock, openTill } from "../../support/writers.ts";

// Of a worker without settings.
const retention = readConfig({});

async function open(t: Test) {
  const service = await startService(t);
  // A prune must not wait for a row that a test holds: with this timeout it fails, and the test with it.
  const options = { name: "coupon test worker", role: "coupon_worker", max: 1, lockTimeoutMs: 1_500 };
  const worker = connect(service.address, options);
  const psql = openSession(service.address, { name: "psql" });
  await psql.run("set session_replication_role = replica");
  t.teardown(() => Promise.all([worker.end(), psql.end()]));
  const pruneOldRows = createOldRowPruner({ database: worker, stopping: new AbortController().signal, retention });
  return { service, worker, psql, pruneOldRows };
}

async function list(service: Running, text: string): Promise<string[]> {
  return (await service.owner.rows<{ it: string }>(text)).map(({ it }) => it);
}

// Events of a feed at positions 1 to n, on pages of so many.
async function fillFeed(service: Running, count: number, perPage = 2): Promise<void> {
  const till = await openTill(service);
  const { once } = await makeStock(service, { again: 1, once: count });
  await till.use(once, false);
  await till.session.end();
  for (let step = 0; step <= count; step += 1) await service.owner.rows("select jobs.sequence_events($1)", [perPage]);
}

// Rows in every table that is pruned, all two days old.
async function fillOldRows(service: Running, psql: Session): Promise<void> {
  await fillFeed(service, 3);
  await psql.run(`
    update core.feed_page set sequenced_at = now() - interval '2 days';
    update core.request set recorded_at = now() - interval '2 days';
    update core.nonce set seen_at = now() - interval '2 days';
    insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, duration_ms, attempted_at)
    values (1, 1, gen_random_uuid(), 1, 1, now() - interval '2 days');
    insert into core.lock_cancellation (tenant_id, caller_id, coupon_id, lock_request_id, recorded_at)
    values (1, 0, gen_random_uuid(), 'late', now() - interval '2 days')`);
}

t.test("request records and the delivery log are deleted after their retention", async (t) => {
  const { service, psql, pruneOldRows } = await open(t);
  await fillFeed(service, 3);
  await psql.rows("delete from core.request where operation <> 'void'");
  await psql.rows(
    `with numbered as (select ctid, row_number() over () as n from core.request)
     update core.request r
     set recorded_at = now() - interval '90 days' + (n - 2) * interval '1 minute', request_id = 'r' || n
     from numbered where numbered.ctid = r.ctid`,
  );
  await psql.rows(
    `insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, duration_ms, attempted_at)
     select 1, 1, gen_random_uuid(), n, 1, now() - interval '30 days' + (n - 2) * interval '1 minute'
     from generate_series(1, 3) n`,
  );
  await pruneOldRows();
  // The second row was exactly at the limit; the clock has moved on since.
  t.strictSame(await list(service, "select request_id as it from core.request order by 1"), ["r3"]);
  t.strictSame(await list(service, "select attempt::text as it from core.delivery_attempt order by 1"), ["3"]);
});

t.test("pages are deleted from the front of a feed; an older cursor continues at the first kept event", async (t) => {
  const { service, worker, psql, pruneOldRows } = await open(t);
  await fillFeed(service, 10);
  t.strictSame(
    await list(service, "select first_position::text as it from core.feed_page order by first_position"),
    ["1", "3", "5", "7", "9"],
    "two events on each page",
  );
  const begin = await service.as("ak_a").get("/v1/events?limit=3");
  const middle = await service.as("ak_a").get("/v1/events?limit=5");
  await psql.rows("update core.feed_page set sequenced_at = now() - interval '401 days' where first_position <= 7");
  // As after a clock that was set back for a while. Nothing is deleted from the middle.
  await psql.rows("update core.feed_page set sequenced_at = now() - interval '399 days' where first_position = 5");
  const steps = [];
  for (let index = 0; index < 4; index += 1)
    steps.push(...(await worker.rows<{ removed: number }>("select jobs.prune_feed(400, 1) as removed")));
  t.strictSame(
    steps.map(({ removed }) => removed),
    [1, 1, 0, 0],
  );
  await pruneOldRows();
  t.strictSame(await list(service, "select position::text as it from rules.feed_event order by position"), [
    "5",
    "6",
    "7",
    "8",
    "9",
    "10",
  ]);
  t.strictSame(await list(service, "select invariant || subject as it from report.invariants"), []);
  const page = await service.as("ak_a").get(`/v1/events?limit=2&cursor=${begin.json.next_cursor}`);
  const kept = await list(
    service,
    "select rules.format_id('evt', event_id) as it from rules.feed_event where position in (5, 6) order by position",
  );
  t.strictSame(
    page.json.events.map(({ event_id }: { event_id: string }) => event_id),
    kept,
  );
  const rest = await service.as("ak_a").get(`/v1/events?limit=1&cursor=${middle.json.next_cursor}`);
  t.equal(rest.json.events[0].event_id, kept[1], "a cursor in the middle of a page continues there");
});

t.test("the prune functions refuse less than one day, and then delete nothing", async (t) => {
  const { service, worker, psql } = await open(t);
  await fillOldRows(service, psql);
  const functions: Record<string, string> = {
    prune_requests: "request",
    prune_cancellations: "lock_cancellation",
    prune_attempts: "delivery_attempt",
    prune_feed: "feed_page",
  };
  for (const [name, table] of Object.entries(functions)) {
    const blocks = name === "prune_feed" ? "" : ", 0, 1000";
    const count = async () => (await list(service, `select count(*)::text as it from core.${table}`))[0]!;
    const before = Number(await count());
    t.ok(before > 0, `${before} rows of ${table}`);
    for (const days of [0, -1, null]) {
      const error = await worker
        .rows(`select jobs.${name}($1, 100${blocks})`, [days])
        .catch((reason: unknown) => reason);
      fits(t, error, { code: "CP400", message: `a retention is at least 1 day, not ${days}` }, `${name} ${days}`);
    }
    t.equal(Number(await count()), before);
    const [row] = await worker.rows<{ removed: number }>(`select jobs.${name}(1, 100${blocks}) as removed`);
    t.equal(row!.removed, before, "one day is accepted");
  }
});

t.test("a row that another session holds is left for the next time, and delays no other", async (t) => {
  const { service, worker, psql } = await open(t);
  await fillOldRows(service, psql);
  for (const [table, call] of [
    ["request", "jobs.prune_requests(1, 100, 0, 1000)"],
    ["lock_cancellation", "jobs.prune_cancellations(1, 100, 0, 1000)"],
    ["delivery_attempt", "jobs.prune_attempts(1, 100, 0, 1000)"],
    ["nonce", "jobs.prune_nonces(100)"],
  ] as const) {
    const prune = async () => (await worker.rows<{ removed: number }>(`select ${call} as removed`))[0]!.removed;
    const before = (await list(service, `select 1 as it from core.${table}`)).length;
    await psql.run(`begin; select from core.${table} limit 1 for update`);
    t.equal(await prune(), before - 1, table);
    await psql.run("rollback");
    t.equal(await prune(), 1, table);
  }
});

// Rows of 1,000 bytes fill a block with eight or fewer.
const bulky = "left(repeat(md5(random()::text), 32), 1000)";

t.test("Each step reads its own blocks, and together they read the table once", async (t) => {
  const { service, psql, worker, pruneOldRows } = await open(t);
  await psql.rows(
    `insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, error, duration_ms, attempted_at)
     select 1, 1, gen_random_uuid(), 1, ${bulky}, 1,
            now() - case n % 2 when 0 then interval '31 days' else '29 days' end
     from generate_series(1, 12000) n`,
  );
  const place = "(ctid::text::point)[0]";
  const blocks = async (condition: string) =>
    service.owner.rows<{ first: number; last: number; rows: number }>(
      `select min(${place})::int as first, max(${place})::int as last, count(*)::int as rows
       from core.delivery_attempt where attempted_at ${condition} now() - interval '30 days'`,
    );
  const [before] = await blocks("<");
  t.ok(before!.last > 1_200, `${before!.last} blocks`);
  const prune = async (limit: number, from: number, to: number) => {
    const text = "select jobs.prune_attempts(30, $1, $2, $3) as removed";
    return (await worker.rows<{ removed: number | null }>(text, [limit, from, to]))[0]!.removed;
  };
  t.equal(await prune(3, 600, 700), 3);
  const removed = await prune(5_000, 600, 700);
  t.ok(removed! > 300 && removed! < 500, `${removed} rows of 100 blocks`);
  t.equal(await prune(5_000, 600, 700), 0);
  fits(t, (await blocks("<"))[0], { first: before!.first, last: before!.last, rows: before!.rows - 3 - removed! });
  const [explained] = await service.owner.rows<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
    "explain (analyze, buffers, format json) select jobs.prune_attempts(30, 5000, 600, 700)",
  );
  const { Plan: plan } = explained!["QUERY PLAN"][0];
  const read = plan["Shared Hit Blocks"]! + plan["Shared Read Blocks"]!;
  // Of the table, and of the catalogues for the plan.
  t.ok(read >= 100 && read < 400, `${read} blocks are read`);
  t.equal(await prune(5_000, before!.last + 1, before!.last + 2), null, "beyond the end");
  await pruneOldRows();
  fits(t, await blocks("<"), [{ rows: 0 }]);
  fits(t, await blocks(">"), [{ rows: 6_000 }]);
  // More than a step deletes, in blocks of one step: an empty table is filled from its start, also after a vacuum.
  await service.owner.rows("truncate core.delivery_attempt");
  await psql.rows(
    `insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, duration_ms, attempted_at)
     select 1, 1, gen_random_uuid(), 1, 1, now() - interval '31 days' from generate_series(1, 11000)`,
  );
  await pruneOldRows();
  fits(t, await blocks("<"), [{ rows: 0 }]);
});

t.test("A table that cannot be pruned fails the job but stops no other; the next job makes up for it", async (t) => {
  const { service, psql, pruneOldRows } = await open(t);
  await fillOldRows(service, psql);
  await psql.run(`
    update core.request set recorded_at = now() - interval '91 days';
    update core.lock_cancellation set recorded_at = now() - interval '91 days';
    update core.delivery_attempt set attempted_at = now() - interval '31 days';
    update core.feed_page set sequenced_at = now() - interval '401 days';
    revoke execute on function jobs.prune_requests from coupon_worker`);
  await t.rejects(pruneOldRows(), { code: "42501" });
  for (const table of ["lock_cancellation", "delivery_attempt", "feed_page"])
    t.strictSame(await list(service, `select count(*)::text as it from core.${table}`), ["0"], table);
  const countRequests = () => list(service, "select count(*)::text as it from core.request");
  t.not((await countRequests())[0], "0");
  await psql.run("grant execute on function jobs.prune_requests to coupon_worker");
  await pruneOldRows();
  t.strictSame(await countRequests(), ["0"]);
});

t.test("A walk that a stop ends fails its job, and no second one starts beside it", async (t) => {
  const { service, worker, psql } = await open(t);
  await fillOldRows(service, psql);
  await psql.run("update core.delivery_attempt set attempted_at = now() - interval '31 days'");
  const stopping = new AbortController();
  const steps: string[] = [];
  const watched = {
    ...worker,
    async rows<T>(text: string, params?: readonly unknown[]) {
      steps.push(text);
      await pruneOldRows();
      stopping.abort(new Error("stopping"));
      return worker.rows<T>(text, params);
    },
  };
  const pruneOldRows = createOldRowPruner({ database: watched, stopping: stopping.signal, retention });
  await t.rejects(pruneOldRows(), { message: "stopping" });
  t.equal(steps.length, 1, "the second call of it does nothing");
  t.strictSame(await list(service, "select count(*)::text as it from core.delivery_attempt"), ["1"]);
});
