// Closing days and finishing statements, with killed and concurrent workers: one statement a day, announced once, with
// the same bytes.
import t from "tap";
import { connect, openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { daySeconds, listStatements, noonOffset, setZone, startWorker, zoneOf } from "../../support/business-days.ts";
import { countReads } from "../../support/count-reads.ts";
import { fits } from "../../support/fits.ts";
import { dateOf, nowSeconds, redeem } from "../../support/midnights.ts";
import { checkStatements, startStatementFixture, type StatementFixture } from "../../support/statement-fixture.ts";
import { startService } from "../../support/service.ts";
import { waitUntil } from "../../support/wait-until.ts";

type Death = (database: Database, text: string, params?: readonly unknown[]) => Promise<unknown>;

// A worker's database that dies at its nth statement, and how far it got.
function dieAt(database: Database, point: number, death: Death) {
  const lived = { statements: 0, isDead: false };
  const dying: Pick<Database, "rows" | "end"> = {
    end: () => Promise.resolve(),
    async rows<T>(text: string, params?: readonly unknown[]): Promise<T[]> {
      if (lived.isDead) throw new Error("dead");
      lived.statements += 1;
      if (lived.statements < point) return database.rows<T>(text, params);
      lived.isDead = true;
      await death(database, text, params);
      throw new Error("killed");
    },
  };
  return { dying, lived };
}

async function closeAndDie(
  { books, end }: StatementFixture,
  party: string,
  point: number,
  death: Death,
): Promise<boolean> {
  await end(party);
  const { dying, lived } = dieAt(books.worker, point, death);
  const closer = books.closerOn(dying);
  await closer
    .closeDays()
    .then(closer.finishStatements)
    .catch(() => {});
  // Another worker takes over. It may need a second try: it shares a pool with the dead one, and the driver reports a
  // lost connection to the next call.
  await waitUntil("another worker to finish the books", () =>
    books.close().then(
      () => true,
      () => false,
    ),
  );
  return lived.isDead;
}

t.test("a worker may die before or after any of its statements", async (t) => {
  const fixture = await startStatementFixture(t, 18);
  const ways: [string, Death][] = [
    ["before", () => Promise.resolve()],
    ["after", (database, text, params) => database.rows(text, params)],
  ];
  for (const [index, party] of fixture.parties.entries()) {
    const [when, death] = ways[index % 2]!;
    const point = Math.floor(index / 2) + 1;
    const isDead = await closeAndDie(fixture, party, point, death);
    t.equal(isDead, point <= 8, `${when} statement ${point}${isDead ? "" : ": there are only eight"}`);
  }
  await checkStatements(t, fixture);
});

t.test("a worker may lose its backend in the middle of any statement", async (t) => {
  const fixture = await startStatementFixture(t, 8);
  const login = connect(fixture.service.address, { name: "coupon test", max: 1 });
  t.teardown(() => login.end());
  const ended: string[] = [];
  for (const [index, party] of fixture.parties.entries()) {
    await closeAndDie(fixture, party, index + 1, async (database, text, params) => {
      // Another session holds the tables, so the statement is caught while it runs.
      const other = openSession(fixture.service.address, { name: "coupon test", role: "coupon_owner" });
      await other.run("begin; lock core.statement, core.posting_page, core.statement_line in access exclusive mode");
      let isOver = false;
      const running = database
        .rows(text, params)
        .catch(() => {})
        .finally(() => {
          isOver = true;
        });
      let killed = 0;
      const isDecided = async () => {
        const rows = await login.rows(
          `select pg_terminate_backend(pid)
           from pg_stat_activity
           where application_name = 'coupon test worker' and datname = current_database()
             and cardinality(pg_blocking_pids(pid)) > 0`,
        );
        killed += rows.length;
        return isOver || killed > 0;
      };
      await waitUntil("the statement to be blocked or over", isDecided, { everyMs: 0 });
      await other.run("rollback");
      await Promise.all([running, other.end()]);
      if (killed > 0) ended.push(/(?:jobs|rules)\.(\w+)/.exec(text)![1]!);
    });
  }
  t.strictSame(ended, [
    "close_days",
    "list_due_statements",
    "summarize_statement",
    "read_statement_page",
    "read_statement_page",
    "finish_statement",
    "list_due_statements",
  ]);
  await checkStatements(t, fixture);
});

t.test("three workers may close the same days at once", async (t) => {
  const fixture = await startStatementFixture(t, 12);
  const others = Array.from({ length: 2 }, () =>
    connect(fixture.service.address, { name: "coupon test worker", role: "coupon_worker", max: 2 }),
  );
  t.teardown(() => Promise.all(others.map((other) => other.end())));
  for (const party of fixture.parties) await fixture.end(party);
  const closers = [fixture.books.closer, ...others.map((other) => fixture.books.closerOn(other))];
  await Promise.all(closers.map((closer) => closer.closeDays()));
  await Promise.all(closers.flatMap((closer) => [closer.finishStatements(), closer.finishStatements()]));
  t.strictSame(fixture.books.errors, []);
  await checkStatements(t, fixture);
});

t.test("worker processes may be killed with -9 while they close days and finish statements", async (t) => {
  const fixture = await startStatementFixture(t, 40);
  for (const party of fixture.parties) await fixture.end(party);
  const count = async (isCounted: (row: { is_ready: boolean }) => boolean) =>
    (await listStatements(fixture.service)).filter(isCounted).length;
  const reached = [
    async () => (await count(() => true)) > 0,
    async () => (await count(({ is_ready }) => is_ready)) > 5,
  ];
  const progress: number[] = [];
  for (const isReached of reached) {
    const worker = startWorker(t, fixture.service);
    await waitUntil("progress", isReached);
    await worker.kill();
    progress.push(await count(({ is_ready }) => is_ready));
  }
  t.comment(`statements finished at each kill: ${progress.join(", ")} of 40`);
  const [last, beside] = [startWorker(t, fixture.service), startWorker(t, fixture.service)];
  await waitUntil("40 ready statements", async () => (await count(({ is_ready }) => is_ready)) === 40);
  await Promise.all([last.kill(), beside.kill()]);
  await fixture.books.sequence();
  await checkStatements(t, fixture);
});

t.test("posting entries and closing days never overlap", async (t) => {
  const fixture = await startStatementFixture(t, 2);
  const { service, books, parties } = fixture;
  const other = openSession(service.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => other.end());
  const closeDays = async (database: Pick<Database, "rows">) =>
    (await database.rows<{ closed: number }>("select jobs.close_days(50) as closed"))[0]!.closed;

  await other.run("begin");
  await other.rows("select jobs.sequence_events(1000)");
  await fixture.end(parties[0]!);
  t.equal(await closeDays(books.worker), 0, "no day closes during a step of the sequencer");
  await other.run("commit");
  await other.run("begin");
  t.equal(await closeDays(other), 1);
  const [step] = await books.worker.rows("select sequenced, is_drained from jobs.sequence_events(1000)");
  fits(t, step, { sequenced: 0, is_drained: false }, "nothing is posted while days are being closed");
  await other.run("commit");
  await fixture.end(parties[1]!);
  await books.close();
  await checkStatements(t, fixture);
});

t.test("however many new events wait, a close reads the oldest 1,000 of them", async (t) => {
  const service = await startService(t);
  const { id, codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1_500);
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  await service.owner.rows("select jobs.sequence_events(1000)");
  await redeem(service, "ak_a", codes[0]!, "mch_a");
  await service.admin.rows("select admin.void_batch('ten_a', $1, 'to have events')", [id]);
  const psql = openSession(service.address, { name: "psql" });
  const session = openSession(service.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => Promise.all([psql.end(), session.end()]));
  // None is settled, however slow this test is.
  await psql.run("set session_replication_role = replica");
  await psql.run("update core.event set recorded_at = now() + interval '1 hour'");
  const moveOldest = (by: string) => psql.run(`update core.ledger_entry set recorded_at = now() + interval '${by}'`);
  await moveOldest("1 hour");
  const worker = countReads(session);
  const close = async () => [...(await worker.rows("select jobs.close_days(1) as closed"))];
  await close();
  worker.takeRows();
  fits(t, await close(), [{ closed: 0 }]);
  const read = worker.takeRows()["jobs.close_days"]!;
  t.ok(read >= 1_000 && read < 1_050, `${read} rows`);

  await setZone(service, "pty_a", zoneOf(offset + daySeconds));
  await moveOldest("-1 hour");
  fits(t, await close(), [{ closed: 0 }], "the oldest one may belong to the day that is over");
  await moveOldest("1 hour");
  fits(t, await close(), [{ closed: 1 }]);
});

t.test("of several days that are over or wait for their files, the earliest come first", async (t) => {
  const { service, books, parties, end } = await startStatementFixture(t, 3);
  const [early, ...others] = parties as [string, string, string];
  const offset = noonOffset();
  const [day, next] = [0, 1].map((days) => dateOf(nowSeconds() + offset + days * daySeconds));
  const closeDays = async (limit: number) => {
    await books.sequence();
    const [row] = await books.worker.rows<{ closed: number }>("select jobs.close_days($1) as closed", [limit]);
    return row!.closed;
  };
  await end(early);
  t.equal(await closeDays(2), 1);
  await books.closer.finishStatements();
  // Now the other two are one day behind.
  await setZone(service, early, zoneOf(offset + 2 * daySeconds));
  for (const other of others) await end(other);
  const listDays = async () => (await listStatements(service)).map(({ distributor, date }) => [distributor, date]);
  t.equal(await closeDays(2), 2, "at most as many as asked for");
  t.strictSame(
    await listDays(),
    [early, ...others].map((party) => [party, day]),
  );
  t.equal(await closeDays(2), 1);
  t.strictSame((await listDays()).at(-1), [early, next]);

  const listDue = async (limit: number) => {
    const list = "select business_date::text as date from jobs.list_due_statements($1)";
    return (await books.worker.rows<{ date: string }>(list, [limit])).map(({ date }) => date);
  };
  t.strictSame(await listDue(2), [day, day]);
  t.strictSame(await listDue(9), [day, day, next]);
  await books.close();
});
