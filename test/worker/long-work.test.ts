// What the worker does each night, and how long its long statements may take.
import { parseCrontab, runMigrations } from "graphile-worker";
import t from "tap";
import { readConfig } from "../../src/config/config.ts";
import { formatRoleUrl, openSession } from "../../src/database/connect.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { crontab, work } from "../../src/work.ts";
import { fits } from "../support/fits.ts";
import { recordDelays } from "../support/record-delays.ts";
import { startService, type Running } from "../support/service.ts";
import { createStubLog } from "../support/stub.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const hour = 3_600_000;

t.test("nonces are pruned each minute, other old rows and the invariants are looked at once a night", (t) => {
  const items = parseCrontab(crontab);
  const times = new Map(items.map(({ task }) => [task, [] as string[]]));
  const start = Date.UTC(2026, 0, 26);
  // A week over the end of a month.
  for (let minute = 0; minute < 7 * 24 * 60; minute += 1) {
    const at = new Date(start + minute * 60_000);
    const digest = {
      min: at.getUTCMinutes(),
      hour: at.getUTCHours(),
      date: at.getUTCDate(),
      month: at.getUTCMonth() + 1,
      dow: at.getUTCDay(),
    };
    for (const { task, match } of items) if (match(digest)) times.get(task)!.push(at.toISOString().slice(5, 16));
  }
  const nights = ["01-26", "01-27", "01-28", "01-29", "01-30", "01-31", "02-01"];
  t.equal(times.get("prune_nonces")!.length, 7 * 24 * 60);
  t.strictSame(
    times.get("prune_old_rows"),
    nights.map((night) => `${night}T03:23`),
  );
  t.strictSame(
    times.get("check"),
    nights.map((night) => `${night}T02:30`),
  );
  t.strictSame(
    items.map(({ task, options }) => [task, options.jobKey, options.backfillPeriod, options.maxAttempts]),
    [
      ["prune_nonces", "prune_nonces", 0, undefined],
      // A worker that starts later in the day makes up for it.
      ["prune_old_rows", "prune_old_rows", 24 * hour, undefined],
      ["check", "check", 0, 3],
    ],
  );
  t.end();
});

// The functions only say what limits the server sets them, or sleep.
async function replaceFunctions({ owner }: Running, names: string[], body = sayLimits): Promise<void> {
  const heads = await owner.rows<{ head: string }>(
    `select format('jobs.%I(%s) returns %s', proname, pg_get_function_arguments(oid), pg_get_function_result(oid))
       as head
     from pg_proc where pronamespace = 'jobs'::regnamespace and proname = any ($1)`,
    [names],
  );
  for (const { head } of heads)
    await owner.rows(`create or replace function ${head} language plpgsql as $$ begin ${body}; end $$`);
}
const sayLimits = `raise 'runs %, waits %, checks its client every %',
  current_setting('statement_timeout'), current_setting('lock_timeout'),
  current_setting('client_connection_check_interval')`;

t.test("summing up a statement may take 10 minutes, and the self-check 3 hours", async (t) => {
  const service = await startService(t);
  const { address, keys } = service;
  const functions = ["list_due_statements", "list_due_webhooks", "expire_coupons", "close_days"];
  await replaceFunctions(service, [...functions, "check_invariants"]);
  // Else a worker that installs them may be too slow for its first look.
  await runMigrations({ connectionString: formatRoleUrl(address, "coupon_worker") });
  const delays = recordDelays(t);
  const { logger, log } = createStubLog();
  const worker = await work({ address, keys, config: readConfig({}), log: logger });
  t.teardown(() => worker.stop());
  const limits: Record<string, string> = {
    statements: "runs 10min, waits 0, checks its client every 0",
    "due work": "runs 25s, waits 5s, checks its client every 0",
    expire: "runs 25s, waits 5s, checks its client every 0",
    close: "runs 25s, waits 5s, checks its client every 0",
  };
  for (const [name, message] of Object.entries(limits)) {
    const failed = await waitUntil(`${name} to fail`, () => log.find(({ ticker }) => ticker === name));
    fits(t, failed, { err: { message } });
  }
  const longer = (limit: number) => delays.filter((ms) => ms > limit && ms <= limit + 10_000).length;
  t.ok(longer(hour / 6) > 0, "the worker waits longer than the server works");

  const check = createChecker({ address, role: "coupon_worker", log: logger, stopping: new AbortController().signal });
  t.equal(longer(3 * hour), 0);
  await t.rejects(check(), { message: "runs 3h, waits 0, checks its client every 10s" });
  t.ok(longer(3 * hour) > 0);
});

t.test("a stop ends a self-check that is under way", async (t) => {
  const service = await startService(t);
  await replaceFunctions(service, ["check_invariants"], "perform pg_sleep(100)");
  const stopping = new AbortController();
  const { logger } = createStubLog();
  const check = createChecker({
    address: service.address,
    role: "coupon_worker",
    log: logger,
    stopping: stopping.signal,
  });
  const checking = check().catch((error: unknown) => error);
  const psql = openSession(service.address, { name: "psql" });
  t.teardown(() => psql.end());
  const text = `select from pg_stat_activity where datname = current_database() and state = 'active'
    and application_name = 'coupon self-check' and query like '%check_invariants()'`;
  await waitUntil("the check", async () => (await psql.rows(text)).length === 1);
  stopping.abort();
  t.type(await waitFor("its end", checking, { withinMs: 60_000 }), Error);
});
