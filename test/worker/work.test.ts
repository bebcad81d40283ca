// The worker as a whole: its tickers, its jobs, which are only wake-up calls, and how long its statements may take.
import { parseCrontab, runMigrations } from "graphile-worker";
import t, { type Test } from "tap";
import { readConfig } from "../../src/config/config.ts";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import { formatRoleUrl } from "../../src/database/connect.ts";
import { createChecker } from "../../src/worker/tasks/check.ts";
import { maxSubscribersAtOnce } from "../../src/worker/tasks/deliver.ts";
import { crontab, work, type WorkParts } from "../../src/work.ts";
import { fits } from "../support/fits.ts";
import { checkComplete, isComplete, submit, type BatchRow } from "../support/minting.ts";
import { startReceiver } from "../support/receiver.ts";
import { recordDelays } from "../support/record-delays.ts";
import { scenario, type Scenario } from "../support/scenario.ts";
import { openMetrics, scrape } from "../support/scrape.ts";
import { createStubLog } from "../support/stub.ts";
import { openWorker, subscribe } from "../support/subscribers.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";
import { loopbackOnly } from "../support/worker-steps.ts";

const role = "coupon_worker";
const hour = 3_600_000;

async function startWork(t: Test, { address, keys }: Scenario, more: Partial<WorkParts> = {}) {
  const { logger, log } = createStubLog();
  const config = readConfig({ WEBHOOK_ALLOW: loopbackOnly.join() });
  const worker = await work({ address, keys, config, log: logger, ...more });
  t.teardown(() => worker.stop());
  return { worker, log };
}

const installQueue = ({ address }: Scenario) => runMigrations({ connectionString: formatRoleUrl(address, role) });

const untilComplete = (world: Scenario, batch: BatchRow) =>
  waitUntil("a complete batch", () => isComplete(world, batch));

t.test("a healthy worker mints a batch, logs no warning, and leaves no job behind", async (t) => {
  const world = await scenario(t);
  const { worker, log } = await startWork(t, world);
  await untilComplete(world, await submit(world, 10));
  await worker.stop();
  const places = log.filter(({ from, msg }) => from === "graphile-worker" && msg === "Spawned");
  t.equal(places.length, maxSubscribersAtOnce + 4, "beside subscribers, three batches and one more task have a place");
  t.ok(log.some(({ from, level, msg }) => from === "graphile-worker" && level === 20 && /mint/.test(String(msg))));
  t.strictSame(
    log.filter(({ level }) => Number(level) >= 40),
    [],
  );
  // Those of each minute may have come meanwhile.
  const byTime = ["prune_nonces", "prune_old_rows", "check"];
  const left = "select from graphile_worker.jobs where task_identifier <> all ($1)";
  t.equal((await openWorker(t, world).rows(left, [byTime])).length, 0);
});

t.test("a worker that may do nothing yet starts, names what fails, and works as soon as it may", async (t) => {
  const world = await scenario(t);
  const shared = "rules.register_keys(jsonb), rules.list_invariants()";
  const rights = ["on all functions in schema jobs", `on function ${shared}`];
  for (const right of rights) await world.owner.rows(`revoke execute ${right} from coupon_worker`);
  await world.owner.rows("grant execute on function jobs.join_workers() to coupon_worker");
  await world.owner.rows("delete from core.invariant_check");
  const batch = await submit(world, 1);
  const { log } = await startWork(t, world);
  const listTickers = (msg: string) => log.filter((line) => line["msg"] === msg).map((line) => line["ticker"]);
  const listFailing = () => listTickers("the ticker failed; it keeps trying");
  const steps = ["analyze", "close", "due work", "expire", "first check", "keys", "list stuck work"];
  steps.push("retry stuck work", "sequence", "statements", "statements 2");
  await waitUntil("every ticker to fail", () => listFailing().length >= steps.length);
  t.strictSame(listFailing().sort(), steps, "each once");
  fits(t, log[0], { msg: "the database cannot be checked yet" });
  for (const right of rights) await world.owner.rows(`grant execute ${right} to coupon_worker`);
  await untilComplete(world, batch);
  // These come each minute, so before or after the others.
  const isRare = (name: unknown) => name === "keys" || name === "first check";
  const others = steps.filter((name) => !isRare(name));
  const listWorking = () => listTickers("the ticker works again").filter((name) => !isRare(name));
  await waitUntil("all others to work", () => listWorking().length >= others.length);
  t.strictSame(listWorking().sort(), others);
});

t.test("the keys are compared each minute: another key is logged, one that a rotation added is not", async (t) => {
  const world = await scenario(t);
  const psql = await world.openPsql({ triggers: false });
  // A minute passes at once.
  recordDelays(t, (ms) => (ms === 60_000 ? 20 : ms));
  const { log } = await startWork(t, world);
  // Key 0 comes first, so it would be named if it were a problem.
  await psql.run(
    `begin;
     update core.master_key set fingerprint = substring(sha256(fingerprint) for 16);
     insert into core.master_key (version, fingerprint) values ('0', substring(sha256('') for 16));
     update core.credential set sealed_secret = '0'::bytea || substring(sealed_secret from 2);
     commit`,
  );
  fits(t, await waitUntil("the ticker to fail", () => log.find(({ ticker }) => ticker === "keys")), {
    msg: "the ticker failed; it keeps trying",
    err: { message: `${world.keys.source}: key 1 is not the one this database was used with` },
  });
});

t.test("a new batch does not wait for the worker's next look", async (t) => {
  const world = await scenario(t);
  const early = await submit(world, 10);
  await startWork(t, world, { lookEveryMs: hour });
  await untilComplete(world, early);
  // It also looks when it has ordered the event of this batch, and when a job ends. Without the jobs of each minute, it
  // would then wait for an hour.
  const login = openWorker(t, world);
  await login.rows("update graphile_worker._private_known_crontabs set last_execution = now() + interval '1 day'");
  await login.rows("select pg_sleep(1)");
  await untilComplete(world, await submit(world, 10));
});

t.test("a job that a killed worker left locked blocks no one", async (t) => {
  const world = await scenario(t);
  const batch = await submit(world, 10);
  await installQueue(world);
  const login = openWorker(t, world);
  await login.rows(
    `select graphile_worker.add_job('mint', payload => '{}', job_key => format('mint:%s:%s', tenant_id, batch_id))
     from jobs.list_due_batches(1, $1::text::jsonb)`,
    [fingerprintKeys(world.keys)],
  );
  await login.rows("update graphile_worker._private_jobs set locked_by = 'killed', locked_at = now(), attempts = 1");
  await startWork(t, world);
  await untilComplete(world, batch);
  await checkComplete(t, world, batch, 10);
});

t.test("each job does the task of its name, and the metrics count attempts and show the self-check", async (t) => {
  const receiver = await startReceiver(t);
  const fixture = await subscribe(t, [receiver.url]);
  const { service: world } = fixture;
  const metrics = await openMetrics(t);
  await installQueue(world);
  const { log } = await startWork(t, world, { metrics });
  const login = openWorker(t, world);
  const psql = await world.openPsql({ triggers: false });
  // No job comes by time from now on.
  const stopCrontab = "update graphile_worker._private_known_crontabs set last_execution = now() + interval '1 day'";
  await waitUntil("the crontab", async () => (await login.rows(`${stopCrontab} returning 1`)).length === 3);
  const listJobs = () => login.rows("select from graphile_worker.jobs");
  await waitUntil("jobs that came before", async () => (await listJobs()).length === 0);
  const countChecks = () => log.filter(({ msg }) => msg === "self-check: all invariants hold").length;
  const checksBefore = countChecks();
  await psql.run(`
    update core.nonce set seen_at = now() - interval '12 minutes';
    update core.request set recorded_at = now() - interval '91 days'`);
  const count = async (table: "nonce" | "request") => (await psql.rows(`select from core.${table}`)).length;
  const run = (task: string) => login.rows("select graphile_worker.add_job($1)", [task]);
  const [nonces, requests] = [await count("nonce"), await count("request")];
  t.ok(nonces > 0 && requests > 0, `${nonces} nonces, ${requests} requests`);
  await run("prune_old_rows");
  // A retry of create_batch is never forgotten, so its record stays.
  await waitUntil("old requests to go", async () => (await count("request")) < requests, { withinMs: 60_000 });
  t.equal(await count("nonce"), nonces);
  await run("prune_nonces");
  await waitUntil("old nonces to go", async () => (await count("nonce")) === 0, { withinMs: 60_000 });
  t.equal(countChecks(), checksBefore);
  await run("check");
  await waitUntil("the self-check", () => countChecks() > checksBefore);
  await fixture.happen("pty_s1", 2);
  const taken = 'coupon_webhook_attempts_total{outcome="taken"}';
  await waitUntil("two attempts", async () => (await scrape(metrics)).get(taken) === 2);
  t.equal((await scrape(metrics)).get("coupon_invariants_broken"), 0);
});

t.test("nonces are pruned each minute, other old rows and the invariants are looked at once a night", (t) => {
  const items = parseCrontab(crontab);
  const times = new Map(items.map(({ task }) => [task, [] as string[]]));
  // Over the end of a month.
  for (let minute = 0; minute < 3 * 24 * 60; minute += 1) {
    const at = new Date(Date.UTC(2026, 0, 30, 0, minute));
    const digest = {
      min: at.getUTCMinutes(),
      hour: at.getUTCHours(),
      date: at.getUTCDate(),
      month: at.getUTCMonth() + 1,
      dow: at.getUTCDay(),
    };
    for (const { task, match } of items) if (match(digest)) times.get(task)!.push(at.toISOString().slice(5, 16));
  }
  const nights = ["01-30", "01-31", "02-01"];
  const eachNight = (time: string) => nights.map((night) => `${night}T${time}`);
  t.equal(times.get("prune_nonces")!.length, nights.length * 24 * 60);
  t.strictSame(times.get("prune_old_rows"), eachNight("03:23"));
  t.strictSame(times.get("check"), eachNight("02:30"));
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

const sayLimits = `raise 'runs %, waits %, checks its client every %',
  current_setting('statement_timeout'), current_setting('lock_timeout'),
  current_setting('client_connection_check_interval')`;

/** The functions do nothing but this. */
async function replaceFunctions({ owner }: Scenario, names: string[], body: string): Promise<void> {
  const heads = await owner.rows<{ head: string }>(
    `select format('%s.%I(%s) returns %s', pronamespace::regnamespace, proname, pg_get_function_arguments(oid),
       pg_get_function_result(oid)) as head
     from pg_proc where format('%s.%s', pronamespace::regnamespace, proname) = any ($1)`,
    [names],
  );
  for (const { head } of heads)
    await owner.rows(`create or replace function ${head} language plpgsql as $$ begin ${body}; end $$`);
}

function createCheck({ address }: Scenario, stopping = new AbortController()) {
  const { logger } = createStubLog();
  return createChecker({ address, role, log: logger, stopping: stopping.signal });
}

t.test("summing up a statement may take 10 minutes, and the self-check 3 hours", async (t) => {
  const world = await scenario(t);
  const ofJobs = ["list_due_statements", "list_due_webhooks", "expire_coupons", "close_days"];
  const functions = [...ofJobs.map((name) => `jobs.${name}`), "rules.check_invariant"];
  await replaceFunctions(world, functions, sayLimits);
  // Else a worker that installs them may be too slow for its first look.
  await installQueue(world);
  const delays = recordDelays(t);
  const { log } = await startWork(t, world);
  const short = "runs 25s, waits 5s, checks its client every 0";
  for (const [name, message] of Object.entries({
    statements: "runs 10min, waits 0, checks its client every 0",
    "due work": short,
    expire: short,
    close: short,
  }))
    fits(t, await waitUntil(`${name} to fail`, () => log.find(({ ticker }) => ticker === name)), { err: { message } });
  const longer = (limit: number) => delays.filter((ms) => ms > limit && ms <= limit + 10_000).length;
  t.ok(longer(hour / 6) > 0, "the worker waits longer than the server works");
  t.equal(longer(3 * hour), 0);
  await t.rejects(createCheck(world)(), { message: "runs 3h, waits 0, checks its client every 10s" });
  t.ok(longer(3 * hour) > 0);
});

t.test("a stop ends a self-check that is under way", async (t) => {
  const world = await scenario(t);
  await replaceFunctions(world, ["rules.check_invariant"], "perform pg_sleep(100)");
  const stopping = new AbortController();
  const checking = createCheck(world, stopping)().catch((error: unknown) => error);
  const psql = await world.openPsql();
  const text = `select from pg_stat_activity where datname = current_database() and state = 'active'
    and application_name = 'coupon self-check' and query like '%check_invariant($1)'`;
  await waitUntil("the check", async () => (await psql.rows(text)).length === 1);
  stopping.abort();
  t.type(await waitFor("its end", checking, { withinMs: 60_000 }), Error);
});
