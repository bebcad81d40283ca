// A runner closes its connections before it says that it has stopped, so the database server can stop right after it.
import t from "tap";
import { createLog } from "../../src/common/log.ts";
import { formatRoleUrl, openSession } from "../../src/database/connect.ts";
import { startGraphileRunner } from "../../src/worker/graphile-runner.ts";
import { createDatabase } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";
import { waitUntil } from "../support/wait-until.ts";

const role = "coupon_worker";

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
  const runner = await startGraphileRunner({
    connection: {
      connectionString: formatRoleUrl({ ...address, host: "127.0.0.1", port: proxy.port }, role),
      ssl: false,
    },
    taskList: {},
    crontab: "",
    concurrency: 2,
    log: createLog("silent"),
  });
  await waitUntil("its connections", async () => (await countOpen()) > 0);
  proxy.set({ delay: () => 1_000 });
  await runner.stop();
  t.equal(await countOpen(), 0);
});
