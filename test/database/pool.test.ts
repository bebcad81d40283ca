// The pool: which connection a statement gets, and how connections that are lost or hang are replaced.
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { Unavailable } from "../../src/common/unavailable.ts";
import { connect, openSession } from "../../src/database/connect.ts";
import { openReconnecting } from "../../src/database/reconnecting.ts";
import type { Database } from "../../src/database/types.ts";
import { createDatabase } from "../support/database.ts";
import { fits } from "../support/fits.ts";
import { waitFor, waitUntil } from "../support/wait-until.ts";

const { address, drop } = await createDatabase();
t.teardown(drop);
let pool: Database;
t.beforeEach(() => {
  pool = connect(address, { name: "coupon test connections", max: 3 });
});
t.afterEach(() => pool.end());

const nap = "select pg_backend_pid() as pid, pg_sleep(0.2)";
const pidOf = async (text = "select pg_backend_pid() as pid", of = pool): Promise<number> =>
  (await of.rows<{ pid: number }>(text))[0]!.pid;
const three = async (): Promise<number[]> => Promise.all([pidOf(nap), pidOf(nap), pidOf(nap)]);
const countSockets = () =>
  process.getActiveResourcesInfo().filter((name) => /^(TCPSocket|Pipe)Wrap$/.test(name)).length;

t.test("statements at the same time get a connection each, others wait, and a lone one reuses the last", async (t) => {
  const first = await pidOf();
  t.strictSame([await pidOf(), await pidOf()], [first, first]);
  t.equal(new Set(await three()).size, 3);
  const last = await pidOf();
  for (let number = 0; number < 5; number += 1) t.equal(await pidOf(), last);
  const usual = connect(address, { name: "coupon test connections" });
  t.teardown(() => usual.end());
  for (const [database, most] of [
    [pool, 3],
    [usual, 10],
  ] as const) {
    const pids = await Promise.all(Array.from({ length: 24 }, () => pidOf(nap, database)));
    t.equal(new Set(pids).size, most);
  }
});

t.test("a failed statement returns its connection, and a connection lost in one fails only that one", async (t) => {
  const lose = "select pg_terminate_backend(pg_backend_pid())";
  for (let number = 0; number < 5; number += 1) {
    await t.rejects(pool.rows("select 1 / 0"), { code: "22012" });
    await t.rejects(pool.rows(lose), { code: "CONNECTION_CLOSED" });
    t.equal(new Set(await three()).size, 3);
  }
});

t.test("statements in a pipe share a connection, and one is sent while the one before runs", async (t) => {
  const pipe = {};
  const inPipe = (text: string) => pool.rows<{ pid: number }>(text, [], pipe);
  const pid = "select pg_backend_pid() as pid";
  const [first, beside, second] = await Promise.all([inPipe(nap), pidOf(nap), inPipe(pid)]);
  t.equal(second[0]!.pid, first[0]!.pid);
  t.not(beside, first[0]!.pid);
  const [failed, after] = await Promise.allSettled([inPipe("select 1 / 0"), inPipe(pid)]);
  fits(t, [failed.status, after.status], ["rejected", "fulfilled"], "each is a transaction of its own");

  const lose = "select pg_terminate_backend(pg_backend_pid()) from pg_sleep(0.2)";
  const [over, lost] = [inPipe(pid), inPipe(lose)];
  const behind = over.then(() => inPipe(pid));
  // What the driver has not sent gets another error.
  const isSent = (error: { code: string }) => ["CONNECTION_CLOSED", "ECONNRESET"].includes(error.code);
  t.strictSame(await Promise.all([lost.catch(isSent), behind.catch(isSent)]), [true, true]);
  t.equal(new Set(await three()).size, 3);
});

t.test("statements in a pipe whose columns change meanwhile run again, and each gets its own answer", async (t) => {
  await pool.rows("create table public.thing as select 1 as value");
  const [pipe, text] = [{}, "select value, $1 as own from public.thing"];
  const run = (own: string) => pool.rows(text, [own], pipe);
  await run("a");
  await pool.rows("alter table public.thing alter value type text");
  const [first, second] = [run("b"), run("c")];
  const third = first.then(() => run("d"));
  const answers = await waitFor("the answers", Promise.all([first, second, third]));
  t.strictSame(
    answers.map((rows) => ({ ...rows[0] })),
    ["b", "c", "d"].map((own) => ({ value: "1", own })),
  );
});

t.test("a statement runs again if its function returns other columns than when it began", async (t) => {
  const psql = openSession(address, { name: "coupon test type" });
  t.teardown(() => psql.end());
  await psql.run(`
    create type public.pair as (a int);
    create function public.pairs() returns public.pair[] language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(7);
      return array(select jsonb_populate_record(null::public.pair, '{"a": 1}') from pg_database limit 1);
    end $$`);
  const text = "select a from unnest(public.pairs())";
  await pool.rows(text);
  await psql.run("select pg_advisory_lock(7)");
  const waiting = pool.rows(text);
  const blocked = "select from pg_locks where locktype = 'advisory' and not granted";
  await waitUntil("the wait for the lock", async () => (await psql.rows(blocked)).length === 1);
  await psql.run("alter type public.pair add attribute b int");
  await psql.run("select pg_advisory_unlock(7)");
  t.strictSame(
    [...(await waiting)].map((row) => ({ ...(row as object) })),
    [{ a: 1 }],
  );
});

t.test("a connection lost while idle fails no statement", async (t) => {
  const open = await three();
  const last = await pidOf();
  const sockets = countSockets();
  const admin = connect(address, { name: "coupon test terminate", max: 1 });
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

type Answer = "hangs" | "answers" | "answers slowly" | Error;

// Connections that hang as a dead network does. Each connect takes the next answer. `ended`: those that were ended.
function startReconnecting(answers: Answer[], deadlineMs?: number) {
  const [asked, ended] = [[] as [connection: number, text: string, params: unknown][], [] as number[]];
  let count = 0;
  const database = openReconnecting(() => {
    const connection = (count += 1);
    const answer = answers[connection - 1]!;
    return {
      async rows<T>(text: string, params?: readonly unknown[]): Promise<T[]> {
        asked.push([connection, text, params]);
        if (answer === "hangs") return new Promise<T[]>(() => {});
        if (answer instanceof Error) throw answer;
        if (answer === "answers slowly") await sleep(50);
        return [{ connection }] as T[];
      },
      async end() {
        ended.push(connection);
        throw new Error("the connection does not end");
      },
    } satisfies Database;
  }, deadlineMs);
  return { database, asked, ended, countConnects: () => count };
}

const late = "the database did not answer in time";

t.test("a call that gets no answer fails at the deadline, and later calls use a new connection", async (t) => {
  const { database, asked, ended } = startReconnecting(["hangs", "answers"], 30);
  const call = database.rows("select 1", [7]).catch((reason: unknown) => reason);
  const error = (await waitFor("the deadline", call)) as Error;
  t.equal(error.message, late);
  t.ok(error.cause instanceof Unavailable);
  t.strictSame(await database.rows("select 2"), [{ connection: 2 }]);
  t.strictSame(asked, [
    [1, "select 1", [7]],
    [2, "select 2", undefined],
  ]);
  t.strictSame(ended, [1]);
});

t.test("reconnect fails every call that hangs, at once, and replaces the connection once", async (t) => {
  const { database, ended, countConnects } = startReconnecting(["hangs", "answers", "answers"]);
  const hanging = [1, 2, 3].map((number) => database.rows(`select ${number}`));
  database.reconnect();
  const results = await waitFor("the calls to fail", Promise.allSettled(hanging), { withinMs: 10_000 });
  const failed = { status: "rejected", reason: { message: late } };
  fits(t, results, [failed, failed, failed]);
  t.strictSame([countConnects(), ended], [2, [1]], "not once for each call");
  t.strictSame(await database.rows("select 4"), [{ connection: 2 }]);
  await t.rejects(database.end(), { message: "the connection does not end" });
  t.strictSame(ended, [1, 2], "end ends the connection that is in use");
});

t.test("a slow answer and any other error keep the connection", async (t) => {
  for (const deadlineMs of [10_000, undefined]) {
    const { database, ended } = startReconnecting(["answers slowly"], deadlineMs);
    t.strictSame(await database.rows("select 1"), [{ connection: 1 }]);
    t.strictSame(ended, []);
  }
  const error = new Error("no such table");
  const { database, ended, countConnects } = startReconnecting([error, "answers"], 30);
  for (let number = 1; number <= 2; number += 1)
    t.equal(await database.rows("select 1").catch((reason: unknown) => reason), error);
  t.strictSame([countConnects(), ended], [1, []]);
});
