// The pool: which connection a statement gets, and how lost connections are replaced.
import { setImmediate } from "node:timers/promises";
import t from "tap";
import { connect } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";
import { waitUntil } from "../support/wait-until.ts";

let test: TestDatabase;
let pool: Database;
t.before(async () => {
  test = await createDatabase();
});
t.beforeEach(() => {
  pool = connect(test.address, { name: "coupon test connections", max: 3 });
});
t.afterEach(() => pool.end());
t.teardown(() => test.drop());

const nap = "select pg_backend_pid() as pid, pg_sleep(0.2)";
const pidOf = async (text = "select pg_backend_pid() as pid"): Promise<number> =>
  (await pool.rows<{ pid: number }>(text))[0]!.pid;
const countSockets = () =>
  process.getActiveResourcesInfo().filter((name) => /^(TCPSocket|Pipe)Wrap$/.test(name)).length;
const three = async (): Promise<number[]> => Promise.all([pidOf(nap), pidOf(nap), pidOf(nap)]);

t.test("statements at the same time get a connection each; a lone statement reuses the last one", async (t) => {
  const first = await pidOf();
  t.strictSame([await pidOf(), await pidOf()], [first, first]);
  t.equal(new Set(await three()).size, 3);
  const last = await pidOf();
  for (let number = 0; number < 5; number += 1) t.equal(await pidOf(), last);
});

t.test("more statements than connections wait for their turn", async (t) => {
  const pids = await Promise.all(Array.from({ length: 10 }, () => pidOf()));
  t.equal(pids.length, 10);
  t.ok(new Set(pids).size <= 3);
});

t.test("a failed statement returns its connection", async (t) => {
  for (let number = 0; number < 5; number += 1) await t.rejects(pool.rows("select 1 / 0"), { code: "22012" });
  t.equal(new Set(await three()).size, 3);
});

t.test("a connection lost during a statement fails only that statement", async (t) => {
  for (let number = 0; number < 5; number += 1) {
    await t.rejects(pool.rows("select pg_terminate_backend(pg_backend_pid())"), { code: "CONNECTION_CLOSED" });
    t.equal(new Set(await three()).size, 3);
  }
});

t.test("a connection lost while idle fails no statement", async (t) => {
  const open = await three();
  const last = await pidOf();
  const sockets = countSockets();
  const admin = connect(test.address, { name: "coupon test terminate", max: 1 });
  await admin.rows("select pg_terminate_backend($1)", [last]);
  await admin.end();
  // Until this process learns of the loss, a statement is sent on the lost connection and fails.
  await waitUntil("the loss of the connection", () => countSockets() === sockets - 1);
  const next = await pidOf();
  t.ok(next !== last && open.includes(next));
  t.equal(new Set(await three()).size, 3);
});

t.test("end() rejects waiting statements", async (t) => {
  const busy = [pidOf(nap), pidOf(nap), pidOf(nap)];
  const waiting = t.rejects(pidOf(), { code: "CONNECTION_ENDED" });
  await setImmediate(); // The driver sends a statement in the next turn.
  await pool.end();
  await Promise.all(busy);
  await waiting;
});
