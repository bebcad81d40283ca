// Retention: rows are deleted when their days are over, in steps, and not earlier.
import t, { type Test } from "tap";
import { readConfig } from "../../../src/config/config.ts";
import { connect } from "../../../src/database/connect.ts";
import { createNoncePruner, createOldRowPruner } from "../../../src/worker/tasks/prune.ts";
import { fits } from "../../support/fits.ts";
import { scenario } from "../../support/scenario.ts";

// Of a worker without settings.
const retention = readConfig({});
const never = new AbortController().signal;

async function open(t: Test) {
  const world = await scenario(t);
  // A prune must not wait for a row that a test holds: with this timeout it fails, and the test with it.
  const options = { name: "coupon test worker", role: "coupon_worker", max: 1, lockTimeoutMs: 1_500 };
  const worker = connect(world.address, options);
  t.teardown(() => worker.end());
  const psql = await world.openPsql({ triggers: false });
  const pruneOldRows = createOldRowPruner({ database: worker, stopping: never, retention });

  const list = async (text: string) => (await psql.rows<{ it: unknown }>(text)).map(({ it }) => String(it));
  const count = async (table: string) => (await psql.rows(`select from core.${table}`)).length;
  const call = async (text: string, ...params: unknown[]) =>
    (await worker.rows<{ removed: number | null }>(`select jobs.${text} as removed`, params))[0]!.removed;

  /** Events of a feed at positions 1 to n, two on a page. */
  async function fillFeed(size: number): Promise<void> {
    for (const coupon of await world.a.makeCoupons(size)) await world.a.till.ok.void(coupon);
    for (let step = 0; step <= size; step += 1) await world.owner.rows("select jobs.sequence_events(2)");
  }

  /** Rows in every table that is pruned, all so old. */
  async function fillOldRows(age: string): Promise<void> {
    await fillFeed(3);
    await psql.run(`
      update core.feed_page set sequenced_at = now() - interval '${age}';
      update core.request set recorded_at = now() - interval '${age}';
      update core.nonce set seen_at = now() - interval '${age}';
      insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, duration_ms, attempted_at)
      values (1, 1, gen_random_uuid(), 1, 1, now() - interval '${age}');
      insert into core.lock_cancellation (tenant_id, caller_id, coupon_id, lock_request_id, recorded_at)
      values (1, 0, gen_random_uuid(), 'late', now() - interval '${age}')`);
  }
  return { world, worker, psql, pruneOldRows, list, count, call, fillFeed, fillOldRows };
}

t.test("rows are deleted after their retention, not earlier", async (t) => {
  const { worker, psql, pruneOldRows, count, fillOldRows } = await open(t);
  const pruneNonces = createNoncePruner({ database: worker, stopping: never });
  await fillOldRows("0 days");
  for (const [table, column, age] of [
    ["nonce", "seen_at", "11 minutes"],
    ["delivery_attempt", "attempted_at", "30 days"],
    ["request", "recorded_at", "90 days"],
    ["lock_cancellation", "recorded_at", "90 days"],
    ["feed_page", "sequenced_at", "400 days"],
  ] as const) {
    const all = await count(table);
    const leave = async (shift: string) => {
      await psql.run(
        `update core.${table} set ${column} = clock_timestamp() - interval '${age}' + interval '${shift}'`,
      );
      await pruneNonces();
      await pruneOldRows();
      return count(table);
    };
    t.equal(await leave("10 seconds"), all, table);
    t.ok((await leave("-1 second")) < all, table);
  }
});

t.test("pages are deleted from the front of a feed; an older cursor continues at the first kept event", async (t) => {
  const { world, psql, pruneOldRows, list, call, fillFeed } = await open(t);
  await fillFeed(10);
  const pull = async (query: string) => (await world.a.maker.get(`/v1/events?${query}`)).json;
  const [begin, middle] = [await pull("limit=3"), await pull("limit=5")];
  await psql.rows("update core.feed_page set sequenced_at = now() - interval '401 days' where first_position <= 7");
  // As after a clock that was set back for a while. Nothing is deleted from the middle.
  await psql.rows("update core.feed_page set sequenced_at = now() - interval '399 days' where first_position = 5");
  const steps = [];
  for (let index = 0; index < 4; index += 1) steps.push(await call("prune_feed(400, 1)"));
  t.strictSame(steps, [1, 1, 0, 0]);
  await pruneOldRows();
  const left = await list("select position as it from rules.feed_event order by position");
  t.strictSame(left, ["5", "6", "7", "8", "9", "10"]);
  const kept = await list(
    "select rules.format_id('evt', event_id) as it from rules.feed_event where position in (5, 6) order by position",
  );
  const page = await pull(`limit=2&cursor=${begin.next_cursor}`);
  t.strictSame(
    page.events.map(({ event_id }: { event_id: string }) => event_id),
    kept,
  );
  const rest = await pull(`limit=1&cursor=${middle.next_cursor}`);
  t.equal(rest.events[0].event_id, kept[1], "a cursor in the middle of a page continues there");
});

t.test("the prune functions refuse less than one day, and then delete nothing", async (t) => {
  const { worker, count, call, fillOldRows } = await open(t);
  await fillOldRows("2 days");
  for (const [table, name, blocks] of [
    ["request", "prune_requests", ", 0, 1000"],
    ["lock_cancellation", "prune_cancellations", ", 0, 1000"],
    ["delivery_attempt", "prune_attempts", ", 0, 1000"],
    ["feed_page", "prune_feed", ""],
  ] as const) {
    const before = await count(table);
    t.ok(before > 0, `${before} rows of ${table}`);
    for (const days of [0, -1, null]) {
      const refused = worker.rows(`select jobs.${name}($1, 100${blocks})`, [days]);
      const error = await refused.catch((reason: unknown) => reason);
      fits(t, error, { code: "CP400", message: `a retention is at least 1 day, not ${days}` }, `${name} ${days}`);
    }
    t.equal(await count(table), before);
    t.equal(await call(`${name}(1, 100${blocks})`), before, "one day is accepted");
  }
});

t.test("a row that another session holds is left for the next time, and delays no other", async (t) => {
  const { psql, count, call, fillOldRows } = await open(t);
  await fillOldRows("2 days");
  for (const [table, prune] of [
    ["request", "prune_requests(1, 100, 0, 1000)"],
    ["lock_cancellation", "prune_cancellations(1, 100, 0, 1000)"],
    ["delivery_attempt", "prune_attempts(1, 100, 0, 1000)"],
    ["nonce", "prune_nonces(100)"],
  ] as const) {
    const before = await count(table);
    await psql.run(`begin; select from core.${table} limit 1 for update`);
    t.equal(await call(prune), before - 1, table);
    await psql.run("rollback");
    t.equal(await call(prune), 1, table);
  }
});

// Rows of 1,000 bytes fill a block with eight or fewer.
const bulky = "left(repeat(md5(random()::text), 32), 1000)";

t.test("each step reads its own blocks, and together they read the table once", async (t) => {
  const { world, psql, pruneOldRows, call } = await open(t);
  const fill = (rows: number, error: string, age: string) =>
    psql.rows(
      `insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, error, duration_ms, attempted_at)
       select 1, 1, gen_random_uuid(), 1, ${error}, 1, now() - ${age} * interval '1 day'
       from generate_series(1, ${rows}) n`,
    );
  await fill(12_000, bulky, "(31 - n % 2 * 2)");
  const place = "(ctid::text::point)[0]";
  const read = async (condition: "<" | ">") => {
    const [row] = await psql.rows<{ first: number; last: number; rows: number }>(
      `select min(${place})::int as first, max(${place})::int as last, count(*)::int as rows
       from core.delivery_attempt where attempted_at ${condition} now() - interval '30 days'`,
    );
    return { ...row! };
  };
  const before = await read("<");
  t.ok(before.last > 1_200, `${before.last} blocks`);
  const prune = (limit: number, from: number, to: number) => call("prune_attempts(30, $1, $2, $3)", limit, from, to);
  t.equal(await prune(3, 600, 700), 3);
  const removed = (await prune(5_000, 600, 700))!;
  t.ok(removed > 300 && removed < 500, `${removed} rows of 100 blocks`);
  t.equal(await prune(5_000, 600, 700), 0);
  t.strictSame(await read("<"), { ...before, rows: before.rows - 3 - removed });
  // The first call of a session also reads the catalogues.
  await psql.rows("select jobs.prune_attempts(30, 5000, 600, 700)");
  const [explained] = await psql.rows<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
    "explain (analyze, buffers, format json) select jobs.prune_attempts(30, 5000, 600, 700)",
  );
  const { Plan: plan } = explained!["QUERY PLAN"][0];
  const blocks = plan["Shared Hit Blocks"]! + plan["Shared Read Blocks"]!;
  t.ok(blocks >= 100 && blocks < 400, `${blocks} blocks are read`);
  t.equal(await prune(5_000, before.last + 1, before.last + 2), null, "beyond the end");
  await pruneOldRows();
  fits(t, [await read("<"), await read(">")], [{ rows: 0 }, { rows: 6_000 }]);
  // More than a step deletes, in blocks of one step: an empty table is filled from its start, also after a vacuum.
  await world.owner.rows("truncate core.delivery_attempt");
  await fill(11_000, "null", "31");
  await pruneOldRows();
  fits(t, await read("<"), { rows: 0 });
});

t.test("a table that cannot be pruned fails the job but stops no other; the next job makes up for it", async (t) => {
  const { psql, pruneOldRows, count, fillOldRows } = await open(t);
  await fillOldRows("401 days");
  await psql.run("revoke execute on function jobs.prune_requests from coupon_worker");
  await t.rejects(pruneOldRows(), { code: "42501" });
  for (const table of ["lock_cancellation", "delivery_attempt", "feed_page"]) t.equal(await count(table), 0, table);
  const before = await count("request");
  await psql.run("grant execute on function jobs.prune_requests to coupon_worker");
  await pruneOldRows();
  t.ok((await count("request")) < before);
});

t.test(
  "a walk that was interrupted goes on where it was, within a day, and the next one begins at the start",
  async (t) => {
    const { world, psql, count } = await open(t);
    const fill = (rows: number) =>
      psql.rows(
        `insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, error, duration_ms, attempted_at)
       select 1, 1, gen_random_uuid(), 1, ${bulky}, 1, now() - interval '31 days' from generate_series(1, ${rows})`,
      );
    await fill(6_000);
    const stopping = new AbortController();
    const starts: number[] = [];
    const walk = (stopAfter: number) => {
      const stop = stopAfter === Infinity ? new AbortController() : stopping;
      const database = {
        ...world.worker,
        async rows<T>(text: string, params: readonly unknown[] = []) {
          if (text.includes("prune_attempts")) starts.push(Number(params[2]));
          if (starts.length === stopAfter) stop.abort(new Error("stopping"));
          return world.worker.rows<T>(text, params);
        },
      };
      return createOldRowPruner({ database, stopping: stop.signal, retention })();
    };
    await t.rejects(walk(1), { message: "stopping" });
    t.ok((await count("delivery_attempt")) > 0, "the rest waits");
    const [, next] = [await walk(Infinity), starts[1]!];
    t.equal(next, 512, "the first step is not repeated");
    t.equal(await count("delivery_attempt"), 0);
    starts.length = 0;
    await walk(Infinity);
    t.equal(starts[0], 0, "a walk that has ended");
    await psql.run("insert into core.prune_walk values ('delivery_attempt', 512, now() - interval '25 hours')");
    starts.length = 0;
    await walk(Infinity);
    t.equal(starts[0], 0, "an old one");
  },
);

t.test("a walk that a stop ends fails its job, and no second one starts beside it", async (t) => {
  const { worker, count, fillOldRows } = await open(t);
  await fillOldRows("91 days");
  const stopping = new AbortController();
  const steps: string[] = [];
  const watched = {
    ...worker,
    async rows<T>(text: string, params?: readonly unknown[]) {
      if (!text.includes("jobs.prune_")) return worker.rows<T>(text, params);
      steps.push(text);
      await pruneOldRows();
      stopping.abort(new Error("stopping"));
      return worker.rows<T>(text, params);
    },
  };
  const pruneOldRows = createOldRowPruner({ database: watched, stopping: stopping.signal, retention });
  await t.rejects(pruneOldRows(), { message: "stopping" });
  t.equal(steps.length, 1, "the second call of it does nothing");
  t.equal(await count("delivery_attempt"), 1);
});
