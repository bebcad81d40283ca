// Which of several servers a connection goes to, and how connections follow the one that takes writes.
import t, { type Test } from "tap";
import type { Address } from "../../src/config/database-address.ts";
import { connect, describeConnection, isConnectionError, openSession } from "../../src/database/connect.ts";
import { createFinder, type Primary } from "../../src/database/primary.ts";
import { startGraphileRunner } from "../../src/worker/graphile-runner.ts";
import { createLog } from "../../src/common/log.ts";
import { useDatabase } from "../support/database.ts";
import { findFreePort } from "../support/listen.ts";
import { startProxy } from "../support/proxy.ts";
import { stopClock } from "../support/stop-clock.ts";
import { waitUntil } from "../support/wait-until.ts";

const never = () => new Promise<never>(() => {});
const refused = async () => Promise.reject(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }));
const wrongPassword = async () => Promise.reject(Object.assign(new Error("wrong password"), { code: "28P01" }));
const standby = async () => null;
const primary =
  (timeline: number, cell = 1) =>
  async () => ({ timeline, cell });

// A finder of servers that answer so. Each answer may be replaced.
function find(answers: (() => Promise<Primary | null>)[]) {
  const places = answers.map((_, index) => ({ host: `db${index}`, port: 5432 }));
  const [first, ...others] = places as [Address, ...Address[]];
  let asked = 0;
  const ask = ({ host }: Address) => {
    asked += 1;
    return answers[Number(host.slice(2))]!();
  };
  const finder = createFinder({ ...first, others, database: "coupon" }, { ask, isConnectionError });
  return { find: async () => (await finder()).host, asked: () => asked };
}

t.test("the server that takes writes is found; of two, the one that was promoted last", async (t) => {
  const rows: [answers: (() => Promise<Primary | null>)[], found: string][] = [
    [[standby, primary(1)], "db1"],
    [[refused, standby, primary(1)], "db2"],
    [[wrongPassword, primary(1)], "db1"],
    [[never, primary(1)], "db1"],
    [[primary(9), primary(10), standby], "db1"],
    [[primary(1), primary(1)], "db0"],
  ];
  for (const [index, [answers, found]] of rows.entries()) t.equal(await find(answers).find(), found, `row ${index}`);
  const late = () => new Promise<Primary>((resolve) => setTimeout(resolve, 20, { timeline: 2, cell: 1 }));
  t.equal(await find([primary(1), late]).find(), "db1", "the others may answer a little later");
});

t.test("if no server takes writes, the error names each, or is that of the server itself", async (t) => {
  const error = { message: "no server takes writes: db0:5432 is a standby; db1:5432: refused" };
  await t.rejects(find([standby, refused]).find(), { ...error, code: "CONNECTION_NO_PRIMARY" });
  await t.rejects(find([standby, wrongPassword]).find(), { message: "wrong password", code: "28P01" });
  const waiting = find([standby, never]).find();
  await t.rejects(waiting, { message: "no server takes writes: db0:5432 is a standby; db1:5432: deadline passed" });
});

t.test("a program stays in its cell, and does not begin among servers of two", async (t) => {
  const clock = stopClock(t);
  const answers: (() => Promise<Primary | null>)[] = [primary(1), standby];
  const { find: finder } = find(answers);
  t.equal(await finder(), "db0");
  answers[1] = primary(2, 4);
  clock.pass(1_000);
  t.equal(await finder(), "db0", "a split has promoted the other");
  answers[0] = standby;
  clock.pass(1_000);
  await t.rejects(finder(), {
    message: /db0:5432 is a standby; db1:5432 is cell 4, and this program works for cell 1/,
  });
  await t.rejects(find([primary(1), primary(2, 4)]).find(), { message: /db0:5432 and db1:5432 are different cells/ });
});

t.test("connections that open together share an answer, for a second or after a failure 250 ms", async (t) => {
  const clock = stopClock(t);
  const answers: (() => Promise<Primary | null>)[] = [primary(1), standby];
  const { find: finder, asked } = find(answers);
  t.strictSame(await Promise.all([finder(), finder()]), ["db0", "db0"]);
  clock.pass(999);
  t.equal(await finder(), "db0");
  t.equal(asked(), 2);
  answers[0] = refused;
  clock.pass(1);
  await t.rejects(finder());
  answers[1] = primary(2);
  clock.pass(249);
  await t.rejects(finder());
  t.equal(asked(), 4);
  clock.pass(1);
  t.equal(await finder(), "db1");
});

// Two ways to one server. The first is closed by the returned function.
async function openTwoWays(t: Test): Promise<{ address: Address; close: () => Promise<void> }> {
  const address = await useDatabase(t);
  const [one, two] = await Promise.all([startProxy(address), startProxy(address)]);
  t.teardown(two.stop);
  const others = [{ host: "127.0.0.1", port: two.port }];
  return { address: { ...address, host: "127.0.0.1", port: one.port, others }, close: () => one.stop() };
}

t.test("pools, sessions and graphile-worker go on at another server", async (t) => {
  const { address, close } = await openTwoWays(t);
  const pool = connect(address, { name: "coupon test", max: 2 });
  t.teardown(() => pool.end());
  const session = openSession(address, { name: "coupon test" });
  t.teardown(() => session.end());
  const role = "coupon_worker";
  const taskList = { none() {} };
  const log = createLog("silent");
  const graphile = describeConnection(address, role);
  const runner = await startGraphileRunner({ ...graphile, taskList, crontab: "", concurrency: 1, log });
  t.teardown(() => runner.stop());
  const ask = () => pool.rows<{ n: number }>("select $1::int as n", [7]).then(([row]) => row!.n);
  t.strictSame(await Promise.all([ask(), ask(), ask()]), [7, 7, 7]);
  await session.run("select 1");

  await close();
  await waitUntil("the loss", () => session.lost.aborted);
  await t.rejects(session.rows("select 1"), { message: "the connection to the database was lost" });
  await waitUntil("the pool", async () => (await ask().catch(() => 0)) === 7);
  t.strictSame(await Promise.all([ask(), ask(), ask()]), [7, 7, 7]);
  const add = () =>
    runner.addJob("none", {}, {}).then(
      () => true,
      () => false,
    );
  await waitUntil("the runner", add);
  const next = openSession(address, { name: "coupon test" });
  t.teardown(() => next.end());
  t.strictSame([...(await next.rows("select 1 as n"))], [{ n: 1 }]);
});

t.test("a server that takes no writes is left at once, and an ended connection opens no other", async (t) => {
  const address = await useDatabase(t);
  const there = { ...address, others: [{ host: "127.0.0.1", port: await findFreePort() }] };
  const pool = connect(there, { name: "coupon test", max: 1 });
  const pid = async () => (await pool.rows<{ pid: number }>("select pg_backend_pid() as pid"))[0]!.pid;
  const before = await pid();
  t.equal(await pid(), before);
  const readOnly = "do $$ begin raise 'no' using errcode = '25006'; end $$";
  await t.rejects(pool.rows(readOnly), { code: "25006" });
  t.not(await pid(), before);
  await pool.end();
  await t.rejects(pid(), { code: "CONNECTION_ENDED" });
});

t.test("one host is asked too if the URL says so", async (t) => {
  const address = await useDatabase(t);
  const port = await findFreePort();
  const there = { ...address, host: "127.0.0.1", port, parameters: { target_session_attrs: "primary" } };
  const rows = connect(there, { name: "coupon test", max: 1 }).rows("select 1");
  await t.rejects(rows, { code: "CONNECTION_NO_PRIMARY", message: new RegExp(`127.0.0.1:${port}: connect ECONN`) });
});
