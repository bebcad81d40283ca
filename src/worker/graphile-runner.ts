// Starts one runner of graphile-worker: it takes jobs from the queue and runs the tasks they name.
//
// Its connections are ours, because graphile-worker neither waits until they are closed nor listens for their last
// errors. If the database stops right after the runner, as in `npm start`, a connection that is still open gets an
// unhandled error, which ends the program.
import {
  Logger as GraphileLogger,
  makeWorkerUtils,
  run,
  type Runner,
  type SharedOptions,
  type TaskList,
} from "graphile-worker";
import pg from "pg";
import type { Logger } from "../common/log.ts";

export type GraphileParts = {
  /** Where and how it connects: parts of the configuration of the pool. */
  connection: { connectionString: string; ssl: pg.PoolConfig["ssl"] };
  /** Returns the server to connect to. Without it, the one in `connection` is meant. */
  findServer?: () => Promise<{ host: string; port: number }>;
  taskList: TaskList;
  crontab: string;
  /** Jobs that this process runs at once. */
  concurrency: number;
  log: Logger;
};

export async function startGraphileRunner({
  connection,
  findServer,
  taskList,
  crontab,
  concurrency,
  log,
}: GraphileParts): Promise<Runner> {
  const lines = log.child({ from: "graphile-worker" });
  const { pgPool, end } = openPool(
    findServer === undefined ? connection : { ...connection, Client: createClient(findServer) },
    lines,
  );
  const shared: SharedOptions = {
    pgPool,
    logger: forwardTo(lines),
    // No delay: otherwise a job that ends during stop() stays locked for 4 hours and then runs again.
    preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
  };
  try {
    await deleteFailedJobs(shared);
    // New jobs are announced by notify. Polling finds jobs whose notification was lost.
    const runner = await run({ ...shared, taskList, crontab, concurrency, pollInterval: 5_000, noHandleSignals: true });
    // The runner may also end by itself.
    runner.promise.then(end, end);
    return {
      ...runner,
      async stop(reason) {
        try {
          await runner.stop(reason);
        } finally {
          await end();
        }
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}

// Our jobs use its connections for a moment only, at their start and end: their work goes over connections of our own.
// So 4 are enough, although one of them only listens for new jobs.
function openPool(connection: pg.PoolConfig, log: Logger): { pgPool: pg.Pool; end: () => Promise<void> } {
  const pgPool = new pg.Pool({ ...connection, max: 4 });
  const open = new Set<pg.PoolClient>();
  pgPool.on("error", (err) => log[pgPool.ending ? "debug" : "error"]({ err }, "a connection failed"));
  pgPool.on("connect", (client) => {
    // If a client in use fails, so does its query. The pool reports the error of an idle client.
    client.on("error", () => {});
    open.add(client);
    client.on("end", () => open.delete(client));
  });
  let ended: Promise<void> | undefined;
  const endOnce = async (): Promise<void> => {
    await pgPool.end();
    await Promise.all([...open].map((client) => new Promise<void>((resolve) => client.on("end", resolve))));
  };
  return { pgPool, end: () => (ended ??= endOnce()) };
}

// pg knows one host, and its pool would return to it after a failover. So each connection asks where to go.
function createClient(findServer: NonNullable<GraphileParts["findServer"]>): new () => pg.Client {
  class Client extends pg.Client {}
  // The pool connects with a callback.
  Client.prototype.connect = function connect(this: Client, callback: (error: Error) => void): void {
    const found = findServer().then(({ host, port }) => Object.assign(this, { host, port }));
    found.then(() => pg.Client.prototype.connect.call(this, callback), callback);
  } as pg.Client["connect"];
  return Client;
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

// graphile-worker advises as many connections as jobs. The operator need not see that: openPool explains why.
const isPoolAdvice = (message: string) => message.includes("maxPoolSize");

function forwardTo(lines: Logger): GraphileLogger {
  return new GraphileLogger(() => (level, message) => {
    if (level === "error") lines.error(message);
    else if (level === "warning" && !isPoolAdvice(message)) lines.warn(message);
    else lines.debug(message);
  });
}
