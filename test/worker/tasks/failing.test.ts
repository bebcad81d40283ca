// A statement that cannot be finished, and a lock that another worker holds, cost one attempt each: no hot loop.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { createCloser } from "../../../src/worker/tasks/close.ts";
import { createSequencer } from "../../../src/worker/tasks/sequence.ts";
import { listStatements } from "../../support/business-days.ts";
import { fits } from "../../support/fits.ts";
import { startService } from "../../support/service.ts";
import { startStatementFixture } from "../../support/statement-fixture.ts";
import { stopClock } from "../../support/stop-clock.ts";
import { createStubLog } from "../../support/stub.ts";
import { openWorker } from "../../support/subscribers.ts";

// Counts the statements of a worker by function. A hot loop ends with an error.
function countCalls(database: Database) {
  const calls: Record<string, number> = {};
  const drawn: unknown[] = [];
  const counting: Pick<Database, "rows" | "end"> = {
    end: () => Promise.resolve(),
    async rows<T>(text: string, params?: readonly unknown[]) {
      const name = /(?:jobs|rules)\.(\w+)/.exec(text)![1]!;
      calls[name] = (calls[name] ?? 0) + 1;
      if (name === "list_due_statements") drawn.push(params![0]);
      if (calls[name] > 50) throw new Error(`${name} is called again and again`);
      return database.rows<T>(text, params);
    },
  };
  return { counting, calls, drawn };
}

t.test("a statement that fails is tried once, delays no other, and is tried again after a minute", async (t) => {
  const fixture = await startStatementFixture(t, 3, { mayBreakInvariants: true });
  const { service, books, parties } = fixture;
  for (const party of parties) await fixture.end(party);
  await books.closer.closeDays();
  const superuser = openSession(service.address, { name: "coupon test" });
  t.teardown(() => superuser.end());
  await superuser.run("set session_replication_role = replica");
  await superuser.run(
    `update core.statement set entry_count = 4
     where distributor_id = (select party_id from core.party where external_id = '${parties[0]!}')`,
  );

  const { counting, calls, drawn } = countCalls(books.worker);
  const closer = books.closerOn(counting);
  const clock = stopClock(t);
  await closer.finishStatements();
  const ready = async () => (await listStatements(service)).filter(({ is_ready }) => is_ready);
  t.strictSame(
    (await ready()).map(({ distributor }) => distributor).sort(),
    parties.slice(1).sort(),
    "the others are finished",
  );
  fits(t, books.errors, [{ msg: "statement not finished; trying again later" }]);
  t.equal(calls["summarize_statement"], 3, "one attempt each");

  // As the ticker does each second.
  for (let times = 0; times < 5; times += 1) await closer.finishStatements();
  t.equal(books.errors.length, 1);
  t.equal(calls["summarize_statement"], 3, "it rests");
  t.equal(drawn.at(-1), 9, "one more than usual, because one rests");

  await superuser.run("update core.statement set entry_count = 3");
  clock.pass(60_000);
  await closer.finishStatements();
  t.equal(calls["summarize_statement"], 3, "a minute is not over yet");
  clock.pass(1);
  await closer.finishStatements();
  t.strictSame((await ready()).map(({ distributor }) => distributor).sort(), [...parties].sort());
  t.equal(books.errors.length, 1);
});

t.test("a statement in work is not drawn again; if a stop interrupts it, that is no failure", async (t) => {
  const { service, books, parties, end } = await startStatementFixture(t, 1);
  await end(parties[0]!);
  await books.closer.closeDays();
  const stop = new AbortController();
  const drawn: unknown[] = [];
  const stopped: Pick<Database, "rows" | "end"> = {
    end: () => Promise.resolve(),
    async rows<T>(text: string, params?: readonly unknown[]) {
      if (text.includes("list_due_statements")) drawn.push(params![0]);
      if (text.includes("summarize_statement")) {
        if (drawn.length < 3) await closer.finishStatements();
        stop.abort();
      }
      return books.worker.rows<T>(text, params);
    },
  };
  const { logger, log } = createStubLog();
  const closer = createCloser({ sequencer: stopped, statements: stopped, log: logger, stopping: stop.signal });
  await closer.finishStatements();
  t.strictSame(drawn, [8, 9], "as many more as are in work");
  t.strictSame(log, []);
  fits(t, await listStatements(service), [{ is_ready: false }]);
  await books.closer.finishStatements();
  fits(t, await listStatements(service), [{ is_ready: true }]);
});

t.test("a sequencer that does not get the lock takes one step and leaves", async (t) => {
  const service = await startService(t);
  const other = openSession(service.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => other.end());
  await other.run("begin");
  await other.rows("select jobs.sequence_events(1)");
  const { counting, calls } = countCalls(openWorker(t, service));
  const { sequence } = createSequencer({ database: counting, stopping: new AbortController().signal });
  t.equal(await sequence(), 0);
  t.strictSame(calls, { sequence_events: 1 });
  await other.run("rollback");
});

t.test(
  "a summary that leaves out an entry is refused, and so are files that differ from their statement",
  async (t) => {
    const { service, books, parties, end } = await startStatementFixture(t, 1);
    await end(parties[0]!);
    await books.sequence();
    await books.closer.closeDays();
    const psql = openSession(service.address, { name: "psql" });
    t.teardown(() => psql.end());
    await psql.run("set session_replication_role = replica");
    const [{ date, ...key }] = (await psql.rows<{ tenant_id: number; distributor_id: number; date: string }>(
      "select tenant_id, distributor_id, business_date::text as date from core.statement",
    )) as [{ tenant_id: number; distributor_id: number; date: string }];
    const day = [key.tenant_id, key.distributor_id, date];

    const summarize = () => psql.rows("select jobs.summarize_statement($1, $2, $3::text::date)", day);
    await psql.run("update core.statement set entry_count = 4");
    await t.rejects(summarize(), { message: `the summary of ${date} has 3 entries, its statement has 4` });
    await psql.run("update core.statement set entry_count = 3");
    await summarize();

    const finish = async (rows: number, detail: string, summary: string) => {
      const call = "select jobs.finish_statement($1, $2, $3::text::date, $4, 10, $5, 1, 10, $6) as done";
      return (await psql.rows<{ done: boolean }>(call, [...day, rows, detail, summary]))[0]!.done;
    };
    const differ = { message: `the files of ${date} do not match their statement` };
    for (const rows of [2, 4]) await t.rejects(finish(rows, "one", "other"), differ);
    t.equal(await finish(3, "one", "other"), true);
    t.equal(await finish(3, "one", "other"), false, "it is ready already");
    await t.rejects(finish(3, "another", "other"), differ);
    await t.rejects(finish(3, "one", "another"), differ);
  },
);
