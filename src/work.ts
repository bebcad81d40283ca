// npm run work: the background tasks. Any number of these processes may run.
//
// Our tables say what is due. A ticker reads them and adds a job of graphile-worker whose key names the batch or
// subscriber. Killed workers need no cleanup: their leases end with their sessions (src/worker/worker-session.ts), and
// then another ticker adds the job again, although the old one stays locked.
import type { Runner, TaskList } from "graphile-worker";
import { defineCommand } from "./command-line/command.ts";
import { ConfigError, readConfig, type Config } from "./config/config.ts";
import type { Address } from "./config/database-address.ts";
import { createLog, type Logger } from "./common/log.ts";
import { startMetrics, type Metrics } from "./server/metrics-server.ts";
import { stopOnSignal } from "./common/program.ts";
import { programSettings, workSettings } from "./config/settings.ts";
import { createKeyReview, fingerprintKeys, type KeyProblem } from "./crypto/key-fingerprint.ts";
import type { MasterKeys } from "./crypto/keys.ts";
import { connect, describeConnection, openSession } from "./database/connect.ts";
import { openReconnecting } from "./database/reconnecting.ts";
import type { Options } from "./database/types.ts";
import { findAddress } from "./embedded/find-address.ts";
import { loadMasterKeys } from "./embedded/load-keys.ts";
import { readBuild, refuseOtherDatabase } from "./migration/version.ts";
import { createAddressRule } from "./worker/address-rule.ts";
import { startGraphileRunner } from "./worker/graphile-runner.ts";
import { createJobRunner, type JobRunner } from "./worker/job-runner.ts";
import { observeWork } from "./worker/metrics.ts";
import { createAnalyzer } from "./worker/tasks/analyze.ts";
import { createChecker, startFirstCheck, type CheckOptions } from "./worker/tasks/check.ts";
import { createCloser } from "./worker/tasks/close.ts";
import { createDeliverer, maxSubscribersAtOnce, type Subscriber } from "./worker/tasks/deliver.ts";
import { createExpirer } from "./worker/tasks/expire.ts";
import { createMinter } from "./worker/tasks/mint.ts";
import type { DueBatch } from "./worker/batch-jobs.ts";
import { createNoncePruner, createOldRowPruner } from "./worker/tasks/prune.ts";
import { createRecaller } from "./worker/tasks/recall.ts";
import { createSequencer } from "./worker/tasks/sequence.ts";
import { createUnsticker } from "./worker/tasks/stuck.ts";
import { startTicker, type Ticker } from "./worker/ticker.ts";
import { createSender } from "./worker/webhook-sender.ts";
import { keepWorkerSession, type GetWorkerSession } from "./worker/worker-session.ts";

const role = "coupon_worker";
// graphile-worker's cron is UTC and runs by the minute. SQL decides what is due.
export const crontab = `
* * * * * prune_nonces ?jobKey=prune_nonces
23 3 * * * prune_old_rows ?jobKey=prune_old_rows&fill=1d
30 2 * * * check ?jobKey=check&max=3
`;
// In addition to subscribers: at least two batches that are minted, one that is recalled, and one cron task.
const otherJobsAtOnce = 4;

export type WorkParts = {
  address: Address;
  keys: MasterKeys;
  config: Config;
  log: Logger;
  metrics?: Metrics | null;
  /** The pause between two searches for due work. */
  lookEveryMs?: number;
};
type Databases = ReturnType<typeof openDatabases>;
type Tasks = ReturnType<typeof createTasks>;

export async function work({ address, keys, config, log, metrics = null, lookEveryMs = 250 }: WorkParts) {
  const stopping = new AbortController();
  const databases = openDatabases(address, metrics !== null);
  const checkDatabase = createDatabaseCheck(databases, keys);
  try {
    await checkDatabase();
  } catch (error) {
    if (error instanceof ConfigError) {
      await endAll(databases);
      throw error;
    }
    log.warn({ err: error }, "the database cannot be checked yet");
  }
  const session = keepWorkerSession({
    // The database notifies this session of new batches and recalls.
    open: (options) => openSession(address, { role, onNotify: () => dueWork.wake(), ...options }),
    onSilent: () => {
      log.warn("the database connections went silent; opening new ones");
      for (const database of Object.values(databases)) database?.reconnect();
      runner.reconnect();
    },
    log,
  });
  const tasks = createTasks({ address, keys, config, log, metrics }, databases, session.get, stopping.signal);
  const runner = createJobRunner({
    start: () => startRunner(address, tasks, log),
    // When a job ends, more work may be due, so look at once.
    onJobEnded: () => dueWork.wake(),
    log,
  });
  const dueWork = startTicker({ name: "due work", everyMs: lookEveryMs, log, tick: () => addDueJobs(runner, tasks) });
  // A database may be restored or replaced while this program runs.
  const keyCheck = startTicker({ name: "keys", everyMs: 60_000, log, tick: checkDatabase });
  const firstCheck = startFirstCheck({ database: databases.jobs, runner, log });
  const tickers = [dueWork, keyCheck, firstCheck, ...startStepTickers(tasks, dueWork, log)];

  return {
    async stop(): Promise<void> {
      stopping.abort();
      await Promise.all(tickers.map((ticker) => ticker.stop()));
      await runner.stop();
      await session.stop();
      await endAll(databases);
    },
  };
}

// Each kind of work has its own connections, so that no kind waits for another.
function openDatabases(address: Address, hasMetrics: boolean) {
  const open = (options: Options, deadlineMs?: number) =>
    openReconnecting(() => connect(address, { role, ...options }), deadlineMs);
  const short = { statementTimeoutMs: 25_000, lockTimeoutMs: 5_000 };
  return {
    jobs: open({ name: "coupon work", max: 3, ...short }),
    // Minting holds a connection for half a second at a time.
    deliveries: open({ name: "coupon deliver", max: 4, ...short }),
    // equivalent mutant (literal 1): the sequencer runs one statement at a time
    sequencer: open({ name: "coupon sequence", max: 1, ...short }),
    // Summing up a day of millions of entries is one statement.
    statements: open({ name: "coupon statements", max: 2, statementTimeoutMs: 600_000 }, 610_000),
    // equivalent mutant (literal 1): the metrics run one statement at a time
    metrics: hasMetrics ? open({ name: "coupon metrics", max: 1, statementTimeoutMs: 2_000 }, 3_000) : null,
  };
}

const endAll = (databases: Databases) => Promise.all(Object.values(databases).map((database) => database?.end()));

// Rejects with a ConfigError if the database has another version, other keys, or settings that break the service.
function createDatabaseCheck({ jobs }: Databases, keys: MasterKeys) {
  const fingerprints = fingerprintKeys(keys);
  const review = createKeyReview(keys);
  return async (): Promise<void> => {
    await refuseOtherDatabase(jobs.rows);
    const text = "select version, problem from rules.register_keys($1::text::jsonb)";
    review(await jobs.rows<KeyProblem>(text, [fingerprints]));
  };
}

function createTasks(
  { address, keys, config, log, metrics }: Required<Omit<WorkParts, "lookEveryMs">>,
  databases: Databases,
  getSession: GetWorkerSession,
  stopping: AbortSignal,
) {
  const observer = databases.metrics === null ? undefined : observeWork(metrics!, databases.metrics);
  const send = createSender({ mayConnect: createAddressRule(config.webhookAllow) });
  const { jobs: database, deliveries, sequencer, statements } = databases;
  return {
    minter: createMinter({ database, keys, getSession, stopping }),
    recaller: createRecaller({ database, getSession, stopping }),
    deliverer: createDeliverer({
      database: deliveries,
      keys,
      send,
      getSession,
      stopping,
      log,
      onAttempt: observer?.attempted,
    }),
    pruneNonces: createNoncePruner({ database, stopping }),
    pruneOldRows: createOldRowPruner({ database, stopping, retention: config }),
    check: createChecker({ address, role, log, stopping }),
    expire: createExpirer({ database, stopping }),
    analyze: createAnalyzer({ database, stopping }),
    sequencer: createSequencer({ database: sequencer, stopping }),
    closer: createCloser({ sequencer, statements, log, stopping }),
    unsticker: createUnsticker({ sequencer, database, log, stopping }),
  };
}

function startRunner(
  address: Address,
  { minter, recaller, deliverer, pruneNonces, pruneOldRows, check }: Tasks,
  log: Logger,
): Promise<Runner> {
  const taskList: TaskList = {
    mint: (payload) => minter.mint(payload as DueBatch),
    recall: (payload) => recaller.recall(payload as DueBatch),
    deliver: (payload) => deliverer.deliver(payload as Subscriber),
    prune_nonces: pruneNonces,
    prune_old_rows: pruneOldRows,
    check: (payload) => check(payload as CheckOptions),
  };
  return startGraphileRunner({
    ...describeConnection(address, role),
    taskList,
    crontab,
    concurrency: otherJobsAtOnce + maxSubscribersAtOnce,
    log,
  });
}

async function addDueJobs(runner: JobRunner, { minter, recaller, deliverer }: Tasks): Promise<void> {
  await runner.keepAlive();
  for (const [task, { listDue }] of Object.entries({ mint: minter, recall: recaller }))
    for (const { tenant_id, batch_id } of await listDue())
      await runner.addJob(task, { tenant_id, batch_id }, { jobKey: `${task}:${tenant_id}:${batch_id}` });
  for (const { tenant_id, party_id } of await deliverer.listDue())
    await runner.addJob("deliver", { tenant_id, party_id }, { jobKey: `deliver:${tenant_id}:${party_id}` });
}

// Tasks that run in short steps need no jobs.
function startStepTickers({ sequencer, expire, analyze, closer, unsticker }: Tasks, dueWork: Ticker, log: Logger) {
  const everySecond = (name: string, tick: () => Promise<unknown>) => startTicker({ name, everyMs: 1_000, log, tick });
  const sequence = async () => {
    // New events may be due to subscribers.
    if ((await sequencer.sequence()) > 0) dueWork.wake();
  };
  return [
    startTicker({ name: "sequence", everyMs: sequencer.pauseMs, log, tick: sequence }),
    everySecond("expire", expire),
    everySecond("analyze", analyze),
    everySecond("close", closer.closeDays),
    everySecond("statements", closer.finishStatements),
    // A second connection, so that other statements do not wait for a large one.
    everySecond("statements 2", closer.finishStatements),
    everySecond("retry stuck work", unsticker.retry),
    everySecond("list stuck work", unsticker.logChanges),
  ];
}

async function workAlone(): Promise<void> {
  const config = readConfig();
  const log = createLog(config.logLevel);
  const address = findAddress(config);
  const keys = loadMasterKeys(config);
  const running = stopOnSignal(log);
  const metrics = await startMetrics(config, log, readBuild());
  if (metrics !== null) running.push(metrics);
  running.push(await work({ address, keys, config, log, metrics }));
  log.info({ metrics_url: metrics?.url }, "working");
}

export const command = defineCommand({
  name: "work",
  about:
    "Does the background work. It mints and recalls coupons, orders events, delivers webhooks, closes business days, " +
    "expires coupons, prunes old rows and checks the invariants. Any number of these processes may run on a migrated " +
    "database. Ctrl-C or SIGTERM stops it; another process continues what it leaves.",
  settings: [...programSettings, ...workSettings],
  examples: ["", "WEBHOOK_ALLOW=10.0.0.0/8"],
  exitCodes: "0 stopped by a signal, 1 failed",
  run: workAlone,
});
