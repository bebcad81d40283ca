// A runner of graphile-worker that stops, fails or goes silent is replaced. Below: a real runner, its connections when
// it stops, failed jobs, and jobs whose notification was lost.
import { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { runMigrations, type Runner, type TaskList } from "graphile-worker";
import t, { type Test } from "tap";
import { createLog } from "../../src/common/log.ts";
import { Unavailable } from "../../src/common/unavailable.ts";
import { formatRoleUrl, openSession } from "../../src/database/connect.ts";
import { startGraphileRunner } from "../../src/worker/graphile-runner.ts";
import { createJobRunner } from "../../src/worker/job-runner.ts";
import { createDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { startProxy } from "../support/proxy.ts";
import { recordDelays } from "../support/record-delays.ts";
import { stopClock } from "../support/stop-clock.ts";
import { createStubLog } from "../support/stub.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

let clock: ReturnType<typeof stopClock>;
t.beforeEach((t) => {
  clock = stopClock(t);
});

type Made = { events: EventEmitter; fail: (error: Error) => void; isKilled: boolean; isStopped: boolean };

// Runners that do nothing. `answers` says whether adding a job returns.
function keep({
  start = async () => {},
  stop = async (_: Made): Promise<void> => {},
  answers = (): boolean => true,
  answerWithinMs = 20,
  hasUsualLimits = false,
} = {}) {
  const made: Made[] = [];
  const added: unknown[][] = [];
  const { logger, log } = createStubLog();
  let ended = 0;
  const kept = createJobRunner({
    log: logger,
    ...(!hasUsualLimits && { limits: { answerWithinMs, deadAfterMs: 100 } }),
    onJobEnded: () => void (ended += 1),
    async start() {
      const one: Made = { events: new EventEmitter(), fail: () => {}, isKilled: false, isStopped: false };
      made.push(one);
      await start();
      const promise = new Promise<void>((_, reject) => {
        one.fail = reject;
      });
      const kill = async () => {
        one.isKilled = true;
      };
      return {
        events: one.events,
        promise,
        kill,
        async stop() {
          one.isStopped = true;
          await stop(one);
          if (one.isKilled) throw new Error("it is stopping already");
        },
        addJob(...job: unknown[]) {
          added.push(job);
          return answers() ? Promise.resolve() : new Promise(() => {});
        },
      } as unknown as Runner;
    },
  });
  return { kept, made, added, log, ended: () => ended };
}

t.test("a runner is kept as long as it shows signs of life", async (t) => {
  const { kept, made, ended } = keep();
  await kept.keepAlive();
  for (let times = 0; times < 5; times += 1) {
    clock.pass(60);
    made[0]!.events.emit(times % 2 === 0 ? "worker:getJob:empty" : "job:start");
    clock.pass(60);
    await kept.keepAlive();
  }
  t.equal(made.length, 1);
  made[0]!.events.emit("job:complete");
  t.equal(ended(), 1);
});

t.test("a runner that stops or fails is replaced", async (t) => {
  const { kept, made, log } = keep();
  await kept.keepAlive();
  made[0]!.events.emit("pool:gracefulShutdown");
  await kept.keepAlive();
  t.equal(made.length, 2);
  made[1]!.fail(new Error("gone"));
  await sleep(0);
  await kept.keepAlive();
  t.equal(made.length, 3);
  fits(t, log, [{ level: 40, msg: "the job runner failed" }]);

  kept.reconnect();
  await kept.keepAlive();
  made[2]!.events.emit("pool:gracefulShutdown");
  made[2]!.fail(new Error("gone"));
  await sleep(0);
  await kept.keepAlive();
  t.equal(made.length, 4, "what an old runner still says does not concern its successor");
});

t.test("a start that fails is the caller's error, and the next call starts again", async (t) => {
  let starts = 0;
  const start = async () => {
    starts += 1;
    if (starts === 1) throw new Error("no database");
  };
  const { kept, added } = keep({ start });
  await t.rejects(kept.addJob("mint", { batch_id: 1 }, {}), { message: "no database" });
  await kept.addJob("mint", { batch_id: 2 }, { jobKey: "mint:2" });
  t.strictSame([starts, added], [2, [["mint", { batch_id: 2 }, { jobKey: "mint:2" }]]]);
});

t.test("stop stops the runner that works, and does not fail if there is none or it stops already", async (t) => {
  const { kept, made } = keep();
  await kept.stop();
  t.equal(made.length, 0);
  await kept.keepAlive();
  await kept.stop();
  t.strictSame([made[0]!.isStopped, made[0]!.isKilled], [true, false]);
  made[0]!.isKilled = true;
  await kept.stop();
});

t.test("reconnect() ends a stop that hangs on silent connections", async (t) => {
  const stop = ({ events }: Made) => {
    events.emit("pool:gracefulShutdown");
    return new Promise<void>(() => {});
  };
  const { kept, made } = keep({ stop });
  await kept.keepAlive();
  let hasStopped = false;
  const stopped = kept.stop().then(() => (hasStopped = true));
  await sleep(0);
  t.strictSame([made[0]!.isStopped, hasStopped], [true, false]);
  kept.reconnect();
  await waitFor("the stop", stopped, { withinMs: 20_000 });
});

t.test("an answer has 10 seconds, and a runner without a sign of life for 30 is killed and replaced", async (t) => {
  const { kept, made, log } = keep({ hasUsualLimits: true });
  const delays = recordDelays(t);
  await kept.keepAlive();
  clock.pass(30_000);
  await kept.keepAlive();
  t.strictSame([made.length, delays], [1, [10_000, 10_000]]);
  clock.pass(1);
  await kept.keepAlive();
  fits(t, log, [{ level: 40, msg: "the job runner does not respond; starting a new one" }]);
  t.strictSame(
    made.map(({ isKilled }) => isKilled),
    [true, false],
  );
});

t.test("reconnect() gives up a runner, and callers that wait for it fail at once", async (t) => {
  const { kept, made } = keep({ answers: () => made.length > 1, answerWithinMs: 60_000 });
  const countTimers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = countTimers();
  const adding = t.rejects(kept.addJob("mint", {}, {}), Unavailable);
  await sleep(0);
  kept.reconnect();
  await waitFor("the caller to fail", adding, { withinMs: 20_000 });
  t.equal(countTimers(), before, "the timer of the deadline is gone too");
  await kept.addJob("mint", {}, {});
  t.strictSame(
    made.map(({ isKilled }) => isKilled),
    [true, false],
  );
});

t.test("an unresponsive database delays no caller beyond the deadline, and only one start waits for it", async (t) => {
  const hung = keep({ answers: () => false });
  await t.rejects(hung.kept.addJob("mint", {}, {}), Unavailable);

  const { promise: back, resolve: comeBack } = Promise.withResolvers<void>();
  const away = keep({ start: () => back });
  await t.rejects(away.kept.keepAlive(), Unavailable);
  await t.rejects(away.kept.keepAlive(), Unavailable);
  clock.pass(100);
  await t.rejects(away.kept.keepAlive(), Unavailable);
  t.equal(away.made.length, 1);
  clock.pass(1);
  await t.rejects(away.kept.keepAlive(), Unavailable);
  t.equal(away.made.length, 2, "the first start is given up");
  comeBack();
  await away.kept.keepAlive();
  await sleep(0);
  t.strictSame(
    away.made.map(({ isKilled }) => isKilled),
    [true, false],
  );
});

const role = "coupon_worker";

const startRunner = (connectionString: string, taskList: TaskList = {}) =>
  startGraphileRunner({
    connection: { connectionString, ssl: false },
    taskList,
    crontab: "",
    concurrency: 2,
    log: createLog("silent"),
  });

// A database with the tables of graphile-worker, and a session that adds jobs.
async function openQueue(t: Test) {
  const { address, drop } = await createDatabase();
  t.teardown(drop);
  const connectionString = formatRoleUrl(address, role);
  await runMigrations({ connectionString });
  const login = openSession(address, { name: "coupon test", role });
  t.teardown(() => login.end());
  return { connectionString, login };
}

t.test("a runner that has stopped has no connection left, even if the server learns late that they end", async (t) => {
  const { address, drop } = await createDatabase();
  const session = openSession(address, { name: "coupon test" });
  t.teardown(async () => {
    await session.end();
    await drop();
  });
  const proxy = await startProxy(address);
  t.teardown(() => proxy.stop());
  const countOpen = async (): Promise<number> => {
    const text = `select count(*)::int as count from pg_stat_activity
      where datname = current_database() and application_name = $1`;
    return (await session.rows<{ count: number }>(text, [role]))[0]!.count;
  };
  const runner = await startRunner(formatRoleUrl({ ...address, host: "127.0.0.1", port: proxy.port }, role));
  await waitUntil("its connections", async () => (await countOpen()) > 0);
  proxy.set({ delay: () => 1_000 });
  await runner.stop();
  t.equal(await countOpen(), 0);
});

t.test("jobs that have failed for good are deleted at the start", async (t) => {
  const { connectionString, login } = await openQueue(t);
  await login.rows(
    `select graphile_worker.add_job('mint', run_at => now() + interval '1 hour', max_attempts => 2)
     from generate_series(1, 2)`,
  );
  // As those of a killed worker, once they are unlocked.
  await login.rows("update graphile_worker._private_jobs set attempts = 2 where id = 1");
  const runner = await startRunner(connectionString);
  await runner.stop();
  const left = await login.rows<{ id: string }>("select id::text from graphile_worker._private_jobs");
  t.strictSame(
    left.map(({ id }) => id),
    ["2"],
  );
});

t.test("a job whose notification is lost is found by the next look, 5 seconds after the last", async (t) => {
  const { connectionString, login } = await openQueue(t);
  await login.rows("select graphile_worker.add_job('mint', run_at => now() + interval '1 hour')");
  // 5 seconds pass at once. `login` is connected already: the time limit of that is 5 s too.
  const delays = recordDelays(t, (ms) => (ms === 5_000 ? 20 : ms));
  let hasRun = false;
  const runner = await startRunner(connectionString, { mint: async () => void (hasRun = true) });
  t.teardown(() => runner.stop());
  await waitUntil("a look that finds no job", () => delays.includes(5_000), { withinMs: 60_000 });
  t.equal(hasRun, false);
  // Notifies nobody.
  await login.rows("update graphile_worker._private_jobs set run_at = now()");
  await waitUntil("the job to run", () => hasRun, { withinMs: 60_000 });
});
