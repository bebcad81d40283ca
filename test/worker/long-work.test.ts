// What the worker does each night, and how long its long statements may take.
import { parseCrontab } from "graphile-worker";
import t, { type Test } from "tap";
import { readConfig } from "../../src/common/config.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { crontab, work } from "../../src/work.ts";
import { startService, type Running } from "../support/service.ts";
import { createStubLog } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

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

// The delays of timers that begin from now on.
function recordDelays(t: Test): number[] {
  const delays: number[] = [];
  const { setTimeout: wait } = globalThis;
  const record = (run: () => void, ms = 0) => {
    delays.push(ms);
    return wait(run, ms);
  };
  globalThis.setTimeout = record as typeof setTimeout;
  t.teardown(() => (globalThis.setTimeout = wait));
  return delays;
}

// The bodies of the functions name the time that the server gives them.
const sayTime = ({ owner }: Running, head: string) =>
  owner.rows(
    `create or replace function jobs.${head} language plpgsql security definer set search_path = pg_catalog, pg_temp
     as $$ begin raise 'it may take %', current_setting('statement_timeout'); end $$`,
  );

t.test("a statement may be summed up for 10 minutes, and the self-check takes up to 3 hours", async (t) => {
  const service = await startService(t);
  const { address, keys } = service;
  await sayTime(
    service,
    `list_due_statements(p_limit int, out tenant_id int, out distributor_id int, out business_date date)
     returns setof record`,
  );
  await sayTime(service, "check_invariants(out law text, out count bigint, out example text) returns setof record");
  const delays = recordDelays(t);
  const { logger, log } = createStubLog();
  const worker = await work({ address, keys, config: readConfig({}), log: logger });
  t.teardown(() => worker.stop());
  const failed = await waitUntil("the ticker to fail", () => log.find(({ ticker }) => ticker === "statements"));
  t.match(failed, { err: { message: "it may take 10min" } });
  const longer = (limit: number) => delays.filter((ms) => ms > limit && ms <= limit + 10_000).length;
  t.ok(longer(hour / 6) > 0, "the worker waits longer than the server works");

  const check = createChecker({ address, role: "coupon_worker", log: logger, stopping: new AbortController().signal });
  t.equal(longer(3 * hour), 0);
  await t.rejects(check(), { message: "it may take 3h" });
  t.ok(longer(3 * hour) > 0);
});
