// Starts one runner of graphile-worker: it takes jobs from the queue and runs the tasks they name.
import {
  Logger as GraphileLogger,
  makeWorkerUtils,
  run,
  type Runner,
  type SharedOptions,
  type TaskList,
} from "graphile-worker";
import type { Logger } from "../common/log.ts";

export type GraphileParts = {
  connectionString: string;
  taskList: TaskList;
  crontab: string;
  /** Jobs that this process runs at once. */
  concurrency: number;
  log: Logger;
};

export async function startGraphileRunner({
  connectionString,
  taskList,
  crontab,
  concurrency,
  log,
}: GraphileParts): Promise<Runner> {
  const shared: SharedOptions = {
    connectionString,
    maxPoolSize: 4,
    logger: forwardTo(log),
    // No delay: otherwise a job that ends during stop() stays locked for 4 hours and then runs again.
    preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
  };
  await deleteFailedJobs(shared);
  // New jobs are announced by notify. Polling finds jobs whose notification was lost.
  return run({ ...shared, taskList, crontab, concurrency, pollInterval: 5_000, noHandleSignals: true });
}

// Deletes jobs that have failed for good: those of killed workers, once graphile-worker has unlocked them after 4 h.
// Such a job has no key any more, because the job that replaced it took the key.
async function deleteFailedJobs(shared: SharedOptions): Promise<void> {
  const utils = await makeWorkerUtils(shared);
  try {
    await utils.cleanup({ tasks: ["DELETE_PERMAFAILED_JOBS"] });
  } finally {
    await utils.release();
  }
}

// It advises as many connections as jobs. Our jobs use its connections for a moment only, at their start and end: their
// work goes over connections of our own. So 4 are enough, and the advice is no warning to the operator.
const isPoolAdvice = (message: string) => message.includes("maxPoolSize");

function forwardTo(log: Logger): GraphileLogger {
  const lines = log.child({ from: "graphile-worker" });
  return new GraphileLogger(() => (level, message) => {
    if (level === "error") lines.error(message);
    else if (level === "warning" && !isPoolAdvice(message)) lines.warn(message);
    else lines.debug(message);
  });
}
