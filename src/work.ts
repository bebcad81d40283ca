// npm run work: the background. Any number of these may run.
//
// graphile-worker carries wake-up calls, our tables carry the truth: a ticker asks them what is due and adds a job
// named by what it is about (job_key). A killed worker therefore needs no reaper: its job stays locked, but once
// the lease in our table has run out the ticker adds the same job again, and a locked job of that name gives
// the name up. At most 30 s of lease and one tick pass until somebody goes on.
import { Logger as GraphileLogger, makeWorkerUtils, run, type Runner, type SharedOptions, type TaskList } from "graphile-worker";
import { readConfig, type Config } from "./config.ts";
import { connect, poolUrl, resolveAddress, type Address } from "./database.ts";
import { loadMasterKeys, type MasterKeys } from "./keys.ts";
import { createLog, type Logger } from "./log.ts";
import { isProgram, onStop, runProgram } from "./program.ts";
import { keepAnswering } from "./steady.ts";
import { createMinter, type DueBatch } from "./tasks/mint.ts";
import { createPruner } from "./tasks/prune.ts";
import { startTicker } from "./ticker.ts";

const role = "coupon_worker";
// graphile-worker's cron is UTC and by the minute; what is due is decided in SQL.
const crontab = "* * * * * prune ?jobKey=prune";

export async function work({ address, keys, log }: { address: Address; keys: MasterKeys; config: Config; log: Logger }) {
  const stopping = new AbortController();
  const database = keepAnswering(() => connect(address, { name: "coupon work", role, max: 3, statementTimeoutMs: 25_000, lockTimeoutMs: 5_000 }));
  const minter = createMinter({ database, keys, stopping: stopping.signal });
  const prune = createPruner({ database, stopping: stopping.signal });
  const taskList: TaskList = { mint: (payload) => minter.mint(payload as DueBatch), prune };
  let runner: Runner | undefined;

  const ticker = startTicker({
    name: "mint",
    everyMs: 500,
    log,
    async tick() {
      // Also after the runner has given up, as it does when the database is away for long.
      runner ??= await startRunner();
      for (const { tenant_id, batch_id } of await minter.listDue()) {
        await runner.addJob("mint", { tenant_id, batch_id }, { jobKey: `mint:${tenant_id}:${batch_id}` });
      }
    },
  });

  async function startRunner(): Promise<Runner> {
    const shared: SharedOptions = {
      connectionString: poolUrl(address, role),
      maxPoolSize: 4,
      logger: forwardTo(log),
      // Without these a job that ends during stop() stays locked for 4 hours and then runs again.
      preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
    };
    await dropLeftovers(shared);
    // New jobs announce themselves; polling is for those whose announcement was lost.
    const started = await run({ ...shared, taskList, crontab, concurrency: 3, pollInterval: 5_000, noHandleSignals: true });
    // A batch whose slice is over is due again: it need not wait for the next tick.
    started.events.on("job:complete", () => ticker.wake());
    const forget = () => {
      if (runner === started) runner = undefined;
    };
    started.promise.then(forget, (error: unknown) => {
      log.warn({ err: error }, "runner ended, starting another");
      forget();
    });
    return started;
  }

  return {
    async stop(): Promise<void> {
      stopping.abort();
      await ticker.stop();
      // It refuses when it is stopping of itself, as after losing the database.
      await runner?.stop().catch(() => {});
      await database.end();
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
    const address = await resolveAddress(config);
    const worker = await work({ address, keys: loadMasterKeys(config), config, log });
    onStop(() => worker.stop());
    log.info("working");
  });
}
