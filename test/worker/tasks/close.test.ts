// Closing business days and finishing statements: each entry is on its day, and each day has one statement, announced
// once, with the same bytes, whatever happens to the workers. Real midnights are in statements.test.ts, the moments
// when days are over in test/db/time-zones.test.ts.
import t, { type Test } from "tap";
import { verify } from "../../../src/commands/statements.ts";
import { openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { listStatements, manyDistributors, moveToNoon, noonDate, openBooks } from "../../support/business-days.ts";
import { countReads } from "../../support/count-reads.ts";
import { fits } from "../../support/fits.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { stopClock } from "../../support/stop-clock.ts";
import { openWorker } from "../../support/subscribers.ts";
import { createWorkerSteps } from "../../support/worker-steps.ts";

let world: Scenario;
// Has rows that only a DBA can write.
let broken: Scenario;
t.before(async () => {
  world = await scenario(t, { file: null });
  broken = await scenario(t, { file: null, mayBreakInvariants: true });
});

let tenants = 0;

/** Distributors of a new tenant, with open books and coupons. It is noon where they are. */
async function start(count: number, couponsEach: number, on = world) {
  const name = `c${(tenants += 1)}`;
  const { tenant, parties } = manyDistributors(count, name);
  await on.apply({ tenants: [tenant] });
  for (const party of parties) await moveToNoon(on, party);
  const key = `ak_${name}`;
  const coupons = await openBooks(on, parties, couponsEach, key);
  await on.steps.sequence();
  const days = new Map<string, number>();
  return {
    parties,
    tenant: tenant.id,
    /** Returns the redemption. */
    async redeem(party: string): Promise<string> {
      const { redemption } = await on.as(key, `mch_${name}`).ok.redeem(coupons.get(party)!.pop()!);
      return redemption;
    },
    /** It is the next noon where the distributor is. */
    async end(party: string): Promise<void> {
      const day = (days.get(party) ?? 0) + 1;
      days.set(party, day);
      await moveToNoon(on, party, day);
    },
    async list() {
      return (await listStatements(on)).filter(({ distributor }) => parties.includes(distributor));
    },
  };
}

type Started = Awaited<ReturnType<typeof start>>;

/** Each distributor has as many finished statements, announced once, whose files can be rebuilt byte for byte. */
async function checkStatements(t: Test, { tenant, parties, list }: Started, days: number): Promise<void> {
  const statements = await list();
  t.ok(statements.every(({ is_ready, entries }) => is_ready && entries === 1));
  const byDay = (one: { distributor: string; date: string }) => `${one.distributor} ${one.date}`;
  const expected = parties.flatMap((distributor) =>
    Array.from({ length: days }, (_, day) => byDay({ distributor, date: noonDate(day) })),
  );
  t.strictSame(statements.map(byDay).sort(), expected.sort(), "one statement a day");
  const announced = await world.owner.rows<{ distributor: string; date: string }>(
    `select party as distributor, business_date::text as date from report.event
     where tenant = $1 and event_type = 'reconciliation.ready'`,
    [tenant],
  );
  t.strictSame(announced.map(byDay).sort(), expected, "one reconciliation.ready each");
  const verdicts = await Array.fromAsync(verify(world.admin));
  t.strictSame(
    verdicts.flatMap(({ differences }) => differences),
    [],
    "rebuilt files have the same bytes",
  );
}

t.test("after days without a worker, days close in order, each with the entries recorded on it", async (t) => {
  const { parties, redeem, list, tenant } = await start(1, 6);
  const psql = await world.openPsql({ triggers: false });
  const ofTenant = "where tenant_id = (select tenant_id from core.tenant where external_id = $1)";
  await psql.rows(`update core.ledger_book set open_on = open_on - 2 ${ofTenant}`, [tenant]);
  const redeemed: string[][] = [];
  for (const daysAgo of [2, 1, 0]) {
    const day = [await redeem(parties[0]!), await redeem(parties[0]!)];
    redeemed.push(day);
    await psql.rows(
      `update core.ledger_entry set recorded_at = recorded_at - $1::int * interval '1 day'
       where entry_id = any (select rules.parse_id('red', r) from unnest($2::text[]) r)`,
      [daysAgo, day],
    );
  }
  await world.steps.close();
  const dates = [noonDate(-2), noonDate(-1), noonDate()];
  fits(t, await list(), [
    { date: dates[0], entries: 2, is_ready: true },
    { date: dates[1], entries: 2, is_ready: true },
  ]);
  const postings = await world.owner.rows<{ date: string; redemption: string }>(
    `select business_date::text as date, rules.format_id('red', entry_id) as redemption
     from rules.posting ${ofTenant} order by business_date, number`,
    [tenant],
  );
  t.strictSame(
    dates.map((date) => postings.filter((posting) => posting.date === date).map(({ redemption }) => redemption)),
    redeemed,
  );
});

t.test("a clock that is set back does not move the business day back", async (t) => {
  const { parties, redeem, end, list, tenant } = await start(1, 2);
  const [party] = parties as [string];
  await redeem(party);
  await world.steps.sequence();
  await end(party);
  await world.steps.close();
  const closed = await list();
  fits(t, closed, [{ date: noonDate(), entries: 1, is_ready: true }]);

  await moveToNoon(world, party);
  await redeem(party);
  await t.resolves(world.steps.close(), "the sequencer goes on");
  const postings = await world.owner.rows(
    `select business_date::text as date from rules.posting
     where tenant_id = (select tenant_id from core.tenant where external_id = $1) order by business_date`,
    [tenant],
  );
  t.strictSame(
    postings.map(({ date }) => date),
    [noonDate(), noonDate(1)],
    "an entry recorded on a closed day is posted to the open day",
  );
  t.strictSame(await list(), closed);
});

t.test("a day that is over waits for a settled event that is not sequenced, and for no younger one", async (t) => {
  const { parties, redeem, end, list } = await start(1, 2);
  const [party] = parties as [string];
  const entry = await redeem(party);
  await end(party);
  const psql = await world.openPsql({ triggers: false });
  const move = (by: string) =>
    psql.rows(
      `update core.ledger_entry set recorded_at = now() + $1::text::interval
       where entry_id = rules.parse_id('red', $2)`,
      [by, entry],
    );
  await move("-6 seconds");
  await world.steps.closeDays();
  t.strictSame(await list(), []);
  // It is not settled, however slow this test is.
  await move("1 hour");
  await world.steps.closeDays();
  fits(t, await list(), [{ entries: 0 }]);
});

type Death = (database: Database, text: string, params?: readonly unknown[]) => Promise<unknown>;

/** A worker's database that dies at its nth statement, and how far it got. */
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

t.test("a worker may die before or after any of its statements", async (t) => {
  const started = await start(6, 3);
  const { parties, redeem, end } = started;
  const deaths: Record<string, Death> = {
    before: () => Promise.resolve(),
    after: (database, text, params) => database.rows(text, params),
  };
  for (let index = 0; index < 18; index += 1) {
    const party = parties[index % parties.length]!;
    await redeem(party);
    await world.steps.sequence();
    await end(party);
    const when = index % 2 === 0 ? "before" : "after";
    const point = Math.floor(index / 2) + 1;
    const { dying, lived } = dieAt(world.worker, point, deaths[when]!);
    const { closeDays, finishStatements } = createWorkerSteps(t, world, { database: dying });
    await closeDays()
      .then(finishStatements)
      .catch(() => {});
    t.equal(lived.isDead, point <= 8, `${when} statement ${point}: there are only eight`);
    await world.steps.close();
  }
  await checkStatements(t, started, 3);
});

t.test("three workers may close the same days at once", async (t) => {
  const started = await start(8, 1);
  for (const party of started.parties) await started.redeem(party);
  await world.steps.sequence();
  for (const party of started.parties) await started.end(party);
  const others = [openWorker(t, world), openWorker(t, world)];
  const workers = [world.steps, ...others.map((database) => createWorkerSteps(t, world, { database }))];
  await Promise.all(workers.map((worker) => worker.closeDays()));
  await Promise.all(workers.flatMap((worker) => [worker.finishStatements(), worker.finishStatements()]));
  for (const { log } of workers) t.strictSame(log, []);
  await checkStatements(t, started, 1);
});

t.test("posting entries and closing days never overlap", async (t) => {
  const { parties, end } = await start(1, 1);
  const other = openSession(world.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => other.end());
  const close = async (database: Pick<Database, "rows">) => [
    ...(await database.rows("select jobs.close_days(50) as closed")),
  ];
  await other.run("begin");
  await other.rows("select jobs.sequence_events(1000)");
  await end(parties[0]!);
  fits(t, await close(world.worker), [{ closed: 0 }], "no day closes during a step of the sequencer");
  await other.run("commit");
  await other.run("begin");
  fits(t, await close(other), [{ closed: 1 }]);
  const [step] = await world.worker.rows("select sequenced, is_drained from jobs.sequence_events(1000)");
  fits(t, step, { sequenced: 0, is_drained: false }, "nothing is posted while days are being closed");
  await other.run("commit");
  await world.steps.close();
});

t.test("of several days that are over or wait for their files, the earliest come first", async (t) => {
  const { parties, end, list } = await start(3, 1);
  const [early] = parties as [string];
  const closeDays = async (limit: number) => {
    const [row] = await world.worker.rows<{ closed: number }>("select jobs.close_days($1) as closed", [limit]);
    return row!.closed;
  };
  await end(early);
  await world.steps.close();
  // Now the other two are one day behind.
  for (const party of parties) await end(party);
  const listDays = async () => (await list()).map(({ distributor, date }) => [distributor, date]);
  t.equal(await closeDays(2), 2, "at most as many as asked for");
  t.strictSame(
    await listDays(),
    parties.map((party) => [party, noonDate()]),
  );
  t.equal(await closeDays(2), 1);
  t.strictSame((await listDays()).at(-1), [early, noonDate(1)]);

  const listDue = async (limit: number) => {
    const text = "select business_date::text as date from jobs.list_due_statements($1)";
    return (await world.worker.rows<{ date: string }>(text, [limit])).map(({ date }) => date);
  };
  t.strictSame(await listDue(2), [noonDate(), noonDate()]);
  t.strictSame(await listDue(9), [noonDate(), noonDate(), noonDate(1)]);
  await world.steps.close();
});

/** Counts the statements of a worker by function, and keeps how many due statements it asks for. */
function countCalls({ worker }: Scenario) {
  const calls: Record<string, number> = {};
  const drawn: unknown[] = [];
  const counting: Pick<Database, "rows" | "end"> = {
    ...worker,
    async rows<T>(text: string, params?: readonly unknown[]) {
      const name = /(?:jobs|rules)\.(\w+)/.exec(text)![1]!;
      calls[name] = (calls[name] ?? 0) + 1;
      if (name === "list_due_statements") drawn.push(params![0]);
      if (calls[name] > 50) throw new Error(`${name} is called again and again`);
      return worker.rows<T>(text, params);
    },
  };
  return { counting, calls, drawn };
}

t.test("a statement that fails is tried once, delays no other, and is tried again after a minute", async (t) => {
  const on = await scenario(t, { file: null });
  const { parties, end, list } = await start(3, 1, on);
  for (const party of parties) await end(party);
  await on.steps.closeDays();
  const psql = await on.openPsql({ triggers: false });
  const setCount = (count: number) =>
    psql.rows(
      `update core.statement set entry_count = $1
       where distributor_id = (select party_id from core.party where external_id = $2)`,
      [count, parties[0]],
    );
  await setCount(1);

  const { counting, calls, drawn } = countCalls(on);
  const { finishStatements, log } = createWorkerSteps(t, on, { database: counting });
  const clock = stopClock(t);
  const listReady = async () => (await list()).filter(({ is_ready }) => is_ready).map(({ distributor }) => distributor);
  await finishStatements();
  t.strictSame((await listReady()).sort(), parties.slice(1).sort(), "the others are finished");
  fits(t, log, [{ msg: "statement not finished; trying again later" }]);
  t.equal(calls["summarize_statement"], 3, "one attempt each");

  // As the ticker does each second.
  for (let times = 0; times < 5; times += 1) await finishStatements();
  t.equal(calls["summarize_statement"], 3, "it rests");
  t.equal(drawn.at(-1), 9, "one more than usual, because one rests");

  await setCount(0);
  clock.pass(60_000);
  await finishStatements();
  t.equal(calls["summarize_statement"], 3, "a minute is not over yet");
  clock.pass(1);
  await finishStatements();
  t.strictSame((await listReady()).sort(), parties.toSorted());
  t.equal(log.length, 1);
});

t.test(
  "a summary that leaves out an entry is refused, and so are files that differ from their statement",
  async (t) => {
    const { parties, redeem, end } = await start(1, 3, broken);
    for (let times = 0; times < 3; times += 1) await redeem(parties[0]!);
    await broken.steps.sequence();
    await end(parties[0]!);
    await broken.steps.closeDays();
    const psql = await broken.openPsql({ triggers: false });
    const of = "from core.statement";
    const summarize = () =>
      psql.rows(`select jobs.summarize_statement(tenant_id, distributor_id, business_date) ${of}`);
    await psql.run("update core.statement set entry_count = 4");
    await t.rejects(summarize(), { message: `the summary of ${noonDate()} has 3 entries, its statement has 4` });
    await psql.run("update core.statement set entry_count = 3");
    await summarize();

    const finish = async (rows: number, detail: string, summary: string) => {
      const call = "jobs.finish_statement(tenant_id, distributor_id, business_date, $1, 10, $2, 1, 10, $3)";
      return (await psql.rows<{ done: boolean }>(`select ${call} as done ${of}`, [rows, detail, summary]))[0]!.done;
    };
    const differ = { message: `the files of ${noonDate()} do not match their statement` };
    for (const rows of [2, 4]) await t.rejects(finish(rows, "one", "other"), differ);
    t.equal(await finish(3, "one", "other"), true);
    t.equal(await finish(3, "one", "other"), false, "it is ready already");
    await t.rejects(finish(3, "another", "other"), differ);
    await t.rejects(finish(3, "one", "another"), differ);
  },
);

t.test("a new book begins today although its first event was written while the clock was ahead", async (t) => {
  const { tenant, parties } = manyDistributors(1, "late");
  await broken.apply({ tenants: [tenant] });
  await moveToNoon(broken, parties[0]!);
  await openBooks(broken, parties, 1, "ak_late");
  const psql = await broken.openPsql({ triggers: false });
  const ofTenant = "where tenant_id = (select tenant_id from core.tenant where external_id = 'ten_late')";
  await psql.run(`update core.event set recorded_at = recorded_at + interval '30 days' ${ofTenant}`);
  await broken.steps.sequence();
  const books = await broken.owner.rows(`select open_on::text from core.ledger_book ${ofTenant}`);
  fits(t, [...books], [{ open_on: noonDate() }]);
});

t.test("however many new events wait, a close reads the oldest 1,000 of them", async (t) => {
  const { parties, end } = await start(1, 1, broken);
  await end(parties[0]!);
  const psql = await broken.openPsql({ triggers: false });
  // None of them is settled, however slow this test is.
  await psql.run(
    `insert into core.event (tenant_id, party_id, event_id, event_type, batch_id, occurred_at, recorded_at)
     select e.tenant_id, e.party_id, gen_random_uuid(), e.event_type, e.batch_id, now(), now() + interval '1 hour'
     from (select * from core.event where batch_id is not null limit 1) e, generate_series(1, 1500)`,
  );
  const session = openSession(broken.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => session.end());
  const worker = countReads(session);
  // The first call of a session also reads the catalogues.
  await worker.rows("select jobs.close_days(0)");
  worker.takeRows();
  fits(t, await worker.rows("select jobs.close_days(1) as closed"), [{ closed: 1 }]);
  const read = worker.takeRows()["jobs.close_days"]!;
  t.ok(read >= 1_000 && read < 1_200, `${read} rows`);
});
