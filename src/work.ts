// npm run work: the background. Any number of these may run.
//
// graphile-worker carries wake-up calls, our tables carry the truth: a ticker asks them what is due and adds a job
// named by what it is about (job_key). A killed worker therefore needs no reaper: its job stays locked, but once
// the lease in our table has run out the ticker adds the same job again, and a locked job of that name gives
// the name up. At most 60 s of lease and one tick pass until somebody goes on.
import {
  Logger as GraphileLogger,
  makeWorkerUtils,
  run,
  type Runner,
  type SharedOptions,
  type TaskList,
} from "graphile-worker";
import { createAddressRule } from "./worker/address-rule.ts";
import { readConfig, type Config } from "./common/config.ts";
import { connect, formatRoleUrl } from "./database/connect.ts";
import type { Address } from "./common/database-address.ts";
import { findAddress } from "./embedded/find-address.ts";
import { loadMasterKeys, type MasterKeys } from "./crypto/keys.ts";
import { createLog, type Logger } from "./common/log.ts";
import { startMetrics, type Metrics } from "./common/metrics-server.ts";
import { observeWork } from "./worker/metrics.ts";
import { isProgram, onStop, runProgram } from "./common/program.ts";
import { keepRunner } from "./worker/job-runner.ts";
import { keepAnswering } from "./database/reconnecting.ts";
import { createChecker } from "./worker/tasks/check.ts";
import { createCloser } from "./worker/tasks/close.ts";
import { createDeliverer, deliveryPlaces, type Subscriber } from "./worker/tasks/deliver.ts";
import { createExpirer } from "./worker/tasks/expire.ts";
import { createMinter, type DueBatch } from "./worker/tasks/mint.ts";
import { createPruner, createRetention } from "./worker/tasks/prune.ts";
import { createSequencer } from "./worker/tasks/sequence.ts";
import { startTicker } from "./worker/ticker.ts";
import { createSender } from "./worker/webhook-sender.ts";

const role = "coupon_worker";
// graphile-worker's cron is UTC and by the minute; what is due is decided in SQL.
const crontab = `
* * * * * prune ?jobKey=prune
23 * * * * retain ?jobKey=retain
30 2 * * * check ?jobKey=check&max=3
`;

export type WorkParts = { address: Address; keys: MasterKeys; config: Config; log: Logger; metrics?: Metrics | null };

export async function work({ address, keys, config, log, metrics = null }: WorkParts) {
  const stopping = new AbortController();
  const database = keepAnswering(() =>
    connect(address, { name: "coupon work", role, max: 3, statementTimeoutMs: 25_000, lockTimeoutMs: 5_000 }),
  );
  // Connections of their own: a batch that is minted holds its for half a second at a time.
  const outbox = keepAnswering(() =>
    connect(address, { name: "coupon deliver", role, max: 4, statementTimeoutMs: 25_000, lockTimeoutMs: 5_000 }),
  );
  // A connection of their own for metrics: they are read also when all others are at work.
  const figures =
    metrics === null
      ? null
      : keepAnswering(
          () => connect(address, { name: "coupon figures", role, max: 1, statementTimeoutMs: 2_000 }),
          3_000,
        );
  const observer = figures === null ? undefined : observeWork(metrics!, figures);
  const send = createSender({ mayConnect: createAddressRule(config.webhookAllow) });
  const deliverer = createDeliverer({
    database: outbox,
    keys,
    send,
    stopping: stopping.signal,
    onAttempt: observer?.attempted,
  });
  const minter = createMinter({ database, keys, stopping: stopping.signal });
  const prune = createPruner({ database, stopping: stopping.signal });
  const retain = createRetention({ database, stopping: stopping.signal, retention: config });
  const check = createChecker({ address, role, log, stopping: stopping.signal, onChecked: observer?.checked });
  const expire = createExpirer({ database, stopping: stopping.signal });
  // A connection of its own: the feed waits for nobody.
  const order = keepAnswering(() =>
    connect(address, { name: "coupon sequence", role, max: 1, statementTimeoutMs: 25_000, lockTimeoutMs: 5_000 }),
  );
  const sequencer = createSequencer({ database: order, stopping: stopping.signal });
  // Patient ones: summing up a day of millions of entries is one statement.
  const books = keepAnswering(
    () => connect(address, { name: "coupon statements", role, max: 2, statementTimeoutMs: 600_000 }),
    610_000,
  );
  const closer = createCloser({ order, books, log, stopping: stopping.signal });
  const taskList: TaskList = {
    mint: (payload) => minter.mint(payload as DueBatch),
    deliver: (payload) => deliverer.deliver(payload as Subscriber),
    prune,
    retain,
    check,
  };
  const runner = keepRunner({ start: startRunner, onJobEnded: () => ticker.wake(), log });

  const ticker = startTicker({
    name: "due work",
    everyMs: 250,
    log,
    async tick() {
      await runner.keepAlive();
      for (const { tenant_id, batch_id } of await minter.listDue()) {
        await runner.addJob("mint", { tenant_id, batch_id }, { jobKey: `mint:${tenant_id}:${batch_id}` });
      }
      for (const { tenant_id, party_id } of await deliverer.listDue()) {
        await runner.addJob("deliver", { tenant_id, party_id }, { jobKey: `deliver:${tenant_id}:${party_id}` });
      }
    },
  });

  const tickers = [
    ticker,
    startTicker({
      name: "sequence",
      everyMs: sequencer.pauseMs,
      log,
      async tick() {
        if ((await sequencer.sequence()) > 0) ticker.wake();
      },
    }),
    startTicker({ name: "expire", everyMs: 1_000, log, tick: expire }),
    startTicker({
      name: "analyze",
      everyMs: 1_000,
      log,
      tick: () => database.rows("select jobs.analyze_grown_tables()"),
    }),
    startTicker({ name: "close", everyMs: 1_000, log, tick: closer.closeDays }),
    startTicker({ name: "statements", everyMs: 1_000, log, tick: closer.finishStatements }),
    // A second one, so that a large statement stands in no other's way.
    startTicker({ name: "statements beside", everyMs: 1_000, log, tick: closer.finishStatements }),
  ];

  async function startRunner(): Promise<Runner> {
    const shared: SharedOptions = {
      connectionString: formatRoleUrl(address, role),
      maxPoolSize: 4,
      logger: forwardTo(log),
      // Without these a job that ends during stop() stays locked for 4 hours and then runs again.
      preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
    };
    await dropLeftovers(shared);
    // New jobs announce themselves; polling is for those whose announcement was lost.
    return run({
      ...shared,
      taskList,
      crontab,
      concurrency: 3 + deliveryPlaces,
      pollInterval: 5_000,
      noHandleSignals: true,
    });
  }

  return {
    async stop(): Promise<void> {
      stopping.abort();
      await Promise.all(tickers.map((each) => each.stop()));
      await runner.stop();
      await Promise.all([database.end(), outbox.end(), order.end(), books.end(), figures?.end()]);
    },
  };
}

// The jobs of killed workers, once graphile-worker has unlocked them (after 4 hours): they had given their name up.
async function dropLeftovers(shared: SharedOptions): Promise<void> {
  const utils = await makeWorkerUtils(shared);
  try {
    await utils.cleanup({ tasks: ["DELETE_PERMAFAILED_JOBS"] });
  } finally {
    await utils.release();
  }
}

function forwardTo(log: Logger): GraphileLogger {
  return new GraphileLogger(() => (level, message) => {
    if (level === "error") log.error({ from: "graphile-worker" }, message);
    else if (level === "warning") log.warn({ from: "graphile-worker" }, message);
    else log.debug({ from: "graphile-worker" }, message);
  });
}

if (isProgram(import.meta)) {
  await runProgram(async () => {
    const config = readConfig();
    const log = createLog(config.logLevel);
    const address = findAddress(config);
    const metrics = await startMetrics(config, log);
    const worker = await work({ address, keys: loadMasterKeys(config), config, log, metrics });
    onStop(async () => {
      await worker.stop();
      await metrics?.stop();
    });
    log.info("working");
  });
}
