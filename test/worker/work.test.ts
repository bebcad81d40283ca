// The worker as a program: jobs of graphile-worker are only wake-up calls, so losing them or a worker loses nothing.
import { runMigrations } from "graphile-worker";
import t, { type Test } from "tap";
import { readConfig } from "../../src/config/config.ts";
import { fingerprintKeys } from "../../src/crypto/key-fingerprint.ts";
import { connect, formatRoleUrl, openSession } from "../../src/database/connect.ts";
import { createLog } from "../../src/common/log.ts";
import { maxSubscribersAtOnce } from "../../src/worker/tasks/deliver.ts";
import { createNoncePruner } from "../../src/worker/tasks/prune.ts";
import { joinWorkers } from "../../src/worker/worker-session.ts";
import { work } from "../../src/work.ts";
import { fits } from "../support/fits.ts";
import { find, submit } from "../support/minting.ts";
import { exitCodeOf, startProgram } from "../support/program.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { createStubLog } from "../support/stub.ts";
import { waitUntil } from "../support/wait-until.ts";

const log = createLog("silent");

const untilBegun = (service: Running, id: string) =>
  waitUntil("the first coupons", async () => (await find(service, id)).minted_count > 0);

const untilComplete = (service: Running, id: string) =>
  waitUntil("a complete batch", async () => (await find(service, id)).status === "COMPLETED");

async function countCoupons(service: Running, id: string) {
  const [row] = await service.owner.rows(
    `select count(*)::int, count(distinct number)::int as different, max(number)
     from core.coupon c join core.batch b using (tenant_id, batch_id) where b.external_id = $1`,
    [id],
  );
  return { ...row };
}

function startWork(t: Test, { address, keys }: Running, more: { lookEveryMs?: number } = {}) {
  const started = work({ address, keys, config: readConfig({}), log, ...more });
  t.teardown(async () => (await started).stop());
  return started;
}

t.test("a healthy start and stop logs no warning and no error", async (t) => {
  const service = await startService(t);
  const { logger, log: lines } = createStubLog();
  const worker = await work({ address: service.address, keys: service.keys, config: readConfig({}), log: logger });
  await untilComplete(service, await submit(service, 1));
  await worker.stop();
  const places = lines.filter(({ from, msg }) => from === "graphile-worker" && msg === "Spawned");
  t.equal(places.length, maxSubscribersAtOnce + 3, "beside subscribers, two batches and one more task have a place");
  t.ok(lines.some(({ from, level, msg }) => from === "graphile-worker" && level === 20 && /mint/.test(String(msg))));
  t.strictSame(
    lines.filter(({ level }) => Number(level) >= 40),
    [],
  );
});

t.test("a worker that may do nothing yet starts, names what fails, and works as soon as it may", async (t) => {
  const service = await startService(t);
  const functions = "on all functions in schema jobs";
  const registering = "on function rules.register_keys(jsonb)";
  await service.owner.rows(`revoke execute ${functions} from coupon_worker`);
  await service.owner.rows(`revoke execute ${registering} from coupon_worker`);
  await service.owner.rows("grant execute on function jobs.join_workers() to coupon_worker");
  const id = await submit(service, 1);
  const { logger, log: lines } = createStubLog();
  const worker = await work({ address: service.address, keys: service.keys, config: readConfig({}), log: logger });
  t.teardown(() => worker.stop());
  const listTickers = (msg: string) => lines.filter((line) => line["msg"] === msg).map((line) => line["ticker"]);
  const listFailing = () => listTickers("the ticker failed; it keeps trying");
  const steps = [
    "analyze",
    "close",
    "due work",
    "expire",
    "keys",
    "list stuck work",
    "retry stuck work",
    "sequence",
    "statements",
    "statements 2",
  ];
  await waitUntil("every ticker to fail", () => listFailing().length >= steps.length);
  t.strictSame(listFailing().sort(), steps, "each once");
  fits(t, lines[0], { msg: "the database cannot be asked for its master keys yet" });
  await service.owner.rows(`grant execute ${functions} to coupon_worker`);
  await service.owner.rows(`grant execute ${registering} to coupon_worker`);
  await untilComplete(service, id);
  // The keys are compared each minute, so they may come before or after the others.
  const others = steps.filter((name) => name !== "keys");
  const listWorking = () => listTickers("the ticker works again").filter((name) => name !== "keys");
  await waitUntil("all others to work", () => listWorking().length >= others.length);
  t.strictSame(listWorking().sort(), others);
});

t.test("the keys are compared each minute: another key is logged, one that a rotation added is not", async (t) => {
  const service = await startService(t);
  const psql = openSession(service.address, { name: "psql" });
  const { setTimeout: wait } = globalThis;
  t.teardown(async () => {
    globalThis.setTimeout = wait;
    await psql.end();
  });
  // A minute passes at once.
  globalThis.setTimeout = ((run: () => void, ms?: number) => wait(run, ms === 60_000 ? 20 : ms)) as typeof setTimeout;
  const { logger, log: lines } = createStubLog();
  const worker = await work({ address: service.address, keys: service.keys, config: readConfig({}), log: logger });
  t.teardown(() => worker.stop());
  // Key 0 comes first, so it would be named if it were a problem.
  await psql.run(
    `set session_replication_role = replica;
     begin;
     update core.master_key set fingerprint = substring(sha256(fingerprint) for 16);
     insert into core.master_key (version, fingerprint) values ('0', substring(sha256('') for 16));
     update core.credential set sealed_secret = '0'::bytea || substring(sealed_secret from 2);
     commit`,
  );
  const findLine = () => lines.find(({ ticker }) => ticker === "keys");
  fits(t, await waitUntil("the ticker to fail", findLine), {
    msg: "the ticker failed; it keeps trying",
    err: { message: `${service.keys.source}: key 1 is not the one this database was used with` },
  });
});

t.test("a batch submitted over HTTP is minted, and no job is left behind", async (t) => {
  const service = await startService(t);
  const worker = await work({ address: service.address, keys: service.keys, config: readConfig({}), log });
  await untilComplete(service, await submit(service, 10));
  await worker.stop();
  const login = connect(service.address, { name: "coupon test", role: "coupon_worker", max: 1 });
  t.teardown(() => login.end());
  // Those of each minute may have come meanwhile.
  const byTime = ["prune_nonces", "prune_old_rows", "check"];
  const left = "select from graphile_worker.jobs where task_identifier <> all ($1)";
  t.equal((await login.rows(left, [byTime])).length, 0);
});

t.test("a new batch does not wait for the worker's next look", async (t) => {
  const service = await startService(t);
  const early = await submit(service, 10);
  await startWork(t, service, { lookEveryMs: 3_600_000 });
  await untilComplete(service, early);
  // It also looks when it has ordered the event of this batch, and when a job ends. Without the jobs of each minute, it
  // would then wait for an hour.
  const login = connect(service.address, { name: "coupon test", role: "coupon_worker", max: 1 });
  t.teardown(() => login.end());
  await login.rows("update graphile_worker._private_known_crontabs set last_execution = now() + interval '1 day'");
  await login.rows("select pg_sleep(1)");
  await untilComplete(service, await submit(service, 10));
});

t.test("a worker session is notified of each new batch, and of no other call", async (t) => {
  const service = await startService(t);
  let notices = 0;
  const listening = openSession(service.address, {
    name: "coupon test",
    role: "coupon_worker",
    onNotify: () => (notices += 1),
  });
  t.teardown(() => listening.end());
  await joinWorkers(listening);
  const body = { request_id: newRequestId(), template: "tpl_fixed", total_count: 1 };
  const answers = [];
  for (const sent of [body, body, { ...body, request_id: newRequestId(), template: "tpl_none" }])
    answers.push((await service.as("ak_a").post("/v1/batches", sent)).status);
  t.strictSame(answers, [200, 200, 404]);
  await submit(service, 1);
  await waitUntil("the second notice", () => notices >= 2);
  await listening.rows("select");
  t.equal(notices, 2);
});

t.test("after a kill -9 in the middle of a batch, the next worker finishes it to the exact count", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 120_000);
  const victim = startProgram(service, "work");
  await untilBegun(service, id);
  victim.kill("SIGKILL");
  await exitCodeOf(victim);
  // Its last statement may still be running in the database. Committed chunks stay.
  await startWork(t, service);
  await untilComplete(service, id);
  t.strictSame(await countCoupons(service, id), { count: 120_000, different: 120_000, max: 120_000 });
});

t.test("a job that a killed worker left locked blocks no one", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 10);
  const login = connect(service.address, { name: "coupon test", role: "coupon_worker", max: 1 });
  t.teardown(() => login.end());
  await runMigrations({ connectionString: formatRoleUrl(service.address, "coupon_worker") });
  await login.rows(
    `select graphile_worker.add_job('mint', payload => '{}', job_key => format('mint:%s:%s', tenant_id, batch_id))
     from jobs.list_due_batches(1, $1::text::jsonb)`,
    [fingerprintKeys(service.keys)],
  );
  await login.rows("update graphile_worker._private_jobs set locked_by = 'killed', locked_at = now(), attempts = 1");
  await startWork(t, service);
  await untilComplete(service, id);
  t.strictSame(await countCoupons(service, id), { count: 10, different: 10, max: 10 });
});

t.test("SIGTERM ends the program with exit code 0 and leaves no lease", async (t) => {
  const service = await startService(t);
  const id = await submit(service, 200_000);
  const program = startProgram(service, "work");
  await untilBegun(service, id);
  program.kill("SIGTERM");
  t.equal(await exitCodeOf(program), 0);
  const batches = await service.owner.rows("select mint_holder from core.batch where external_id = $1", [id]);
  fits(t, batches, [{ mint_holder: null }]);
});

t.test("nonces are deleted after 11 minutes, not earlier", async (t) => {
  const service = await startService(t);
  await service.as("ak_a").get("/v1/batches/bat_none");
  const columns = await service.owner.rows<{ nonce: string }>("select nonce from core.nonce");
  t.equal(columns.length, 1);
  const database = connect(service.address, { name: "coupon test", role: "coupon_worker", max: 1 });
  t.teardown(() => database.end());
  const pruneNonces = createNoncePruner({ database, stopping: new AbortController().signal });
  await service.owner.rows("update core.nonce set seen_at = clock_timestamp() - interval '10 minutes 50 seconds'");
  await pruneNonces();
  t.equal((await service.owner.rows("select from core.nonce")).length, 1);
  await service.owner.rows("update core.nonce set seen_at = clock_timestamp() - interval '11 minutes 1 second'");
  await pruneNonces();
  t.equal((await service.owner.rows("select from core.nonce")).length, 0);
});
