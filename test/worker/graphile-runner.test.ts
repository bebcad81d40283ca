// A runner of graphile-worker: its connections when it stops, failed jobs, and jobs whose notification was lost.
import { runMigrations, type TaskList } from "graphile-worker";
import t, { type Test } from "tap";
import { createLog } from "../../src/common/log.ts";
import { formatRoleUrl, openSession } from "../../src/database/connect.ts";
import { startGraphileRunner } from "../../src/worker/graphile-runner.ts";
import { createDatabase } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";
import { recordDelays } from "../support/record-delays.ts";
import { waitUntil } from "../support/wait-until.ts";

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
