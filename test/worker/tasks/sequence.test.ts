// The feed: it has every committed event once, at positions 1 to N, in the order of each coupon, despite late commits,
// rollbacks and kills. Below the loads are single steps of the sequencer, and how it forgets missing numbers.
import t, { type Test } from "tap";
import { createLog } from "../../../src/common/log.ts";
import { connect, openSession } from "../../../src/database/connect.ts";
import { openReconnecting } from "../../../src/database/reconnecting.ts";
import type { Database } from "../../../src/database/types.ts";
import { createSequencer } from "../../../src/worker/tasks/sequence.ts";
import { startTicker } from "../../../src/worker/ticker.ts";
import { daySeconds, listStatements, noonOffset, setZone, zoneOf } from "../../support/business-days.ts";
import { sendPatiently } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { pullEvents } from "../../support/pull-events.ts";
import { scenario, type Scenario } from "../../support/scenario.ts";
import { takeStep } from "../../support/sequence-events.ts";
import { waitAtMost, waitUntil } from "../../support/wait-until.ts";
import { makeStock, nameOf, openTill, write, type Committed, type Stock } from "../../support/writers.ts";

const never = new AbortController().signal;
const kills = 5;

type Event = { event_id: string; event_type: string; coupon_id: string };

let world: Scenario;
let stock: Stock;
t.before(async () => {
  world = await scenario(t);
  stock = await makeStock(world, { again: 200, once: 3_000 });
});

/** A sequencer as the worker runs it. `failures` are the errors of its ticks. */
function startSequencer(t: Test, name = "coupon test sequencer") {
  const failures: unknown[] = [];
  const database = openReconnecting(() => connect(world.address, { name, role: "coupon_worker", max: 1 }));
  const { sequence, pauseMs } = createSequencer({ database, stopping: never });
  const tick = () =>
    sequence().catch((error: unknown) => {
      failures.push(error);
      throw error;
    });
  const ticker = startTicker({ name, everyMs: pauseMs, log: createLog("silent"), tick });
  t.teardown(async () => {
    await ticker.stop();
    await database.end();
  });
  return failures;
}

/**
 * A reader pulls small pages of the feed during writing, until it has as many events. It misses nothing, reads nothing
 * twice, and a second reading finds the same events in the same order.
 */
async function checkFeed(t: Test, writeAll: () => Promise<Committed>): Promise<Event[]> {
  const { maker } = world.a;
  const { end } = await pullEvents<Event>(maker, 1_000);
  const read: Event[] = [];
  let cursor = end;
  let expected = Infinity;
  const writing = writeAll();
  void writing.then(
    ({ size }) => (expected = size),
    () => (expected = 0),
  );
  const hasReadAll = async () => {
    const { json } = await sendPatiently(() => maker.get(`/v1/events?limit=7&cursor=${cursor}`));
    read.push(...json.events);
    cursor = json.next_cursor;
    return read.length >= expected;
  };
  // What is missing then is said below.
  await waitAtMost(120_000, hasReadAll, { everyMs: 1 });
  const committed = await writing;
  t.strictSame(read.map(nameOf).sort(), [...committed.keys()].sort());
  t.strictSame((await pullEvents<Event>(maker, 1_000, end)).events, read);
  return read;
}

t.test("with 8 writers, commits up to 50 ms late and every fifth rolled back, the feed is complete", async (t) => {
  const failures = startSequencer(t);
  await checkFeed(t, () => write(world, stock, { events: 1_200 }));
  t.strictSame(failures, []);
  const [row] = await world.owner.rows<{ late: number }>(
    `select count(*)::int as late
     from (select event_seq < lag(event_seq) over (order by position) as is_late
           from rules.feed_event) e
     where is_late`,
  );
  t.ok(row!.late > 10, `${row!.late} events came later than one with a higher number`);
});

t.test("a second sequencer, started by mistake, changes nothing", async (t) => {
  const started = [startSequencer(t), startSequencer(t)];
  await checkFeed(t, () => write(world, stock, { events: 600, holdMs: 20 }));
  t.strictSame(started, [[], []], "neither fails");
});

t.test("a sequencer that is killed repeatedly in the middle of its steps loses nothing", async (t) => {
  startSequencer(t, "coupon test victim");
  const login = await world.openPsql();
  let killed = 0;
  // Bounded: a sequencer that never takes its lock cannot be killed while it holds it.
  const deadline = performance.now() + kills * 8_000;
  const isOver = () => killed >= kills || performance.now() > deadline;
  const killing = (async () => {
    while (!isOver()) {
      const rows = await login.rows(
        `select pg_terminate_backend(a.pid) from pg_stat_activity a
         where a.application_name = 'coupon test victim' and a.state = 'active' and a.datname = current_database()
           and exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory')`,
      );
      killed += rows.length;
    }
  })();
  await checkFeed(t, async () => {
    const committed: Committed = new Map();
    // Until after the last kill.
    for (let isLast = false; !isLast;) {
      isLast = isOver();
      for (const [id, at] of await write(world, stock, { events: 200, holdMs: 20 })) committed.set(id, at);
    }
    await killing;
    return committed;
  });
  t.ok(killed >= kills, `${killed} killed`);
});

t.test("the feed keeps flowing while write transactions stay open", async (t) => {
  startSequencer(t);
  // One of the service, with an uncommitted event, and one that has nothing to do with events.
  const [late, foreign] = [await openTill(world), await world.openPsql()];
  t.teardown(() => late.session.end());
  await foreign.run("begin; select pg_current_xact_id()");
  await late.session.run("begin");
  const written = await late.use((await makeStock(world, { again: 1, once: 0 })).again, true);
  const events = await checkFeed(t, async () => {
    const committed = await write(world, stock, { events: 300, perSecond: 300, holdMs: 0, rolledBack: 0.05 });
    const isSequenced = async () => {
      const left = `select from rules.event e
        where not exists (select from rules.feed_event f where f.event_id = e.event_id) and e.coupon_id is not null`;
      return (await world.owner.rows(left)).length === 0;
    };
    await waitUntil("all committed events to be in the feed while both are open", isSequenced, { withinMs: 60_000 });
    const [waiting] = await world.owner.rows<{ gaps: number }>("select count(*)::int as gaps from core.event_gap");
    t.ok(waiting!.gaps > 1, `${waiting!.gaps} gaps: the number of the late event and those of rolled back ones`);
    await late.end("commit", written, committed);
    await foreign.run("rollback");
    return committed;
  });
  t.equal(nameOf(events.at(-1)!), written[0]!.name, "the late event follows when it is committed");
});

type Till = Awaited<ReturnType<typeof openTill>>;

/** Tills of a world with nothing left to sequence, and as many coupons. */
async function openTills(t: Test, count: number) {
  const tills: Till[] = [];
  for (let index = 0; index < count; index += 1) tills.push(await openTill(world));
  t.teardown(() => Promise.all(tills.map(({ session }) => session.end())));
  const { again } = await makeStock(world, { again: 4, once: 0 });
  await world.steps.sequence();
  const committed: Committed = new Map();
  const [older, younger, youngest] = tills as [Till, Till, Till];
  return { older, younger, youngest, coupons: again, committed };
}

const step = (limit?: number) => takeStep(world.worker, limit);

/** The last events of the feed in its order, by name. */
async function listLast(count: number) {
  const rows = await world.owner.rows<{ name: string; on_page: number }>(
    `select rules.format_id('evt', event_id) as name, (position - first_position)::int as on_page
     from rules.feed_event order by position desc limit $1`,
    [count],
  );
  return rows.toReversed();
}

t.test("an event is waited for even if its number is the lowest and its transaction the youngest", async (t) => {
  const { older, younger, coupons, committed } = await openTills(t, 2);
  await older.session.run("begin; select pg_current_xact_id()");
  await younger.session.run("begin");
  const late = await younger.use([coupons[0]!], true);
  await older.end("commit", await older.use([coupons[1]!], true), committed);
  // From here on, every snapshot sees the younger transaction as the oldest running one.
  t.strictSame([await step(), await step(), await step()], [1, 0, 0]);
  await younger.end("commit", late, committed);
  t.equal(await step(), 1);
  const names = (await listLast(2)).map(({ name }) => name);
  t.strictSame(names, [...committed.keys()]);
});

t.test("late events beyond the limit of a step are taken by the next steps", async (t) => {
  const { older, younger, coupons, committed } = await openTills(t, 2);
  await younger.session.run("begin");
  const late = await younger.use(coupons.slice(0, 3), true);
  await older.use([coupons[3]!], true);
  t.equal(await step(), 1);
  await younger.end("commit", late, committed);
  t.strictSame([await step(2), await step(2), await step(2)], [2, 1, 0]);
  const last = await listLast(4);
  const names = last.map(({ name }) => name);
  t.strictSame(names.slice(1), [...committed.keys()]);
  const places = last.map((event) => event.on_page);
  t.strictSame(places, [0, 0, 1, 0], "two on one page, the third on the next");
  const { events } = await pullEvents<{ event_id: string }>(world.a.maker, 1_000);
  const pulled = events.slice(-4).map(({ event_id }) => event_id);
  t.strictSame(pulled, names, "a reader gets them in the order of their positions, not of their numbers");
});

t.test("a number that is missing in a step with a late event is waited for too", async (t) => {
  const { older, younger, youngest, coupons, committed } = await openTills(t, 3);
  for (const till of [younger, youngest]) await till.session.run("begin");
  const late = await younger.use([coupons[0]!], true);
  await older.use([coupons[1]!], true);
  t.equal(await step(), 1);
  const later = await youngest.use([coupons[2]!], true);
  await older.use([coupons[3]!], true);
  await younger.end("commit", late, committed);
  t.equal(await step(), 2, "the late event and a new one, with a missing number between");
  await youngest.end("commit", later, committed);
  t.strictSame([await step(), await step()], [1, 0]);
});

t.test("after a restore into a server with lower transaction ids, late events are found", async (t) => {
  const { older, younger, coupons, committed } = await openTills(t, 2);
  await younger.session.run("begin");
  const late = await younger.use([coupons[0]!], true);
  await older.use([coupons[1]!], true);
  t.equal(await step(), 1);
  await world.owner.rows("update core.sequencer set last_snapshot = '9000000000:9000000000:'");
  await younger.end("commit", late, committed);
  t.equal(await step(), 1);
});

const openWorkerSession = (t: Test) => {
  const session = openSession(world.address, { name: "coupon test worker", role: "coupon_worker" });
  t.teardown(() => session.end());
  return session;
};

t.test("a sequencer stops after its step, and leaves after one step without the lock", async (t) => {
  const { id } = await world.makeBatch(world.a.maker, world.a.template, 1_100);
  await world.steps.sequence();
  await world.a.maker.ok.recallBatch(id);
  await world.steps.recall();
  const database = world.worker;
  t.equal(await createSequencer({ database, stopping: AbortSignal.abort() }).sequence(), 1_000);
  const other = openWorkerSession(t);
  await other.run("begin");
  t.equal(await takeStep(other, 1), 1);
  const calls: string[] = [];
  const counting: Pick<Database, "rows" | "end"> = {
    ...database,
    rows<T>(text: string, params?: readonly unknown[]) {
      calls.push(text);
      if (calls.length > 50) throw new Error("it is called again and again");
      return database.rows<T>(text, params);
    },
  };
  t.equal(await createSequencer({ database: counting, stopping: never }).sequence(), 0);
  t.equal(calls.length, 1);
  await t.rejects(takeStep(other), { code: "25001" }, "in a transaction that has written, late events would be lost");
  await other.run("rollback");
  t.equal(await createSequencer({ database, stopping: never }).sequence(), 100);
});

t.test("gaps of rolled back transactions are forgotten once no running transaction can fill them", async (t) => {
  const { older: till, coupons } = await openTills(t, 1);
  const countGaps = async () => (await world.owner.rows("select from core.event_gap")).length;
  const other = await world.openPsql();
  await other.run("begin; select pg_current_xact_id()");
  await till.session.run("begin");
  await till.use([coupons[0]!], true);
  await till.session.run("rollback");
  await till.use([coupons[1]!], true);
  await step();
  await step();
  t.ok((await countGaps()) > 0, "they are gaps while a transaction could still fill them");
  await other.run("commit");
  // When all transactions that wrote at the same time, anywhere on the server, have ended.
  await waitUntil("the gaps to be forgotten", async () => (await step()) === 0 && (await countGaps()) === 0);
});

t.test("an idle step writes nothing, even while a gap waits for its transaction", async (t) => {
  const { older, younger, coupons } = await openTills(t, 2);
  const worker = openWorkerSession(t);
  await older.session.run("begin");
  await older.use([coupons[0]!], true);
  await younger.use([coupons[1]!], true);
  t.equal(await step(), 1);
  await worker.run("begin");
  t.equal(await takeStep(worker), 0);
  fits(t, await worker.rows("select pg_current_xact_id_if_assigned()::text as id"), [{ id: null }]);
  await worker.run("commit");
  t.ok((await world.owner.rows("select from core.event_gap")).length > 0);
  await older.session.run("rollback");
});

t.test("a day that is over stays open for an entry that was committed late, until it is sequenced", async (t) => {
  world = await scenario(t);
  const psql = await world.openPsql({ triggers: false });
  await setZone(world, "pty_a", zoneOf(noonOffset()));
  const { older: late, younger: till, coupons } = await openTills(t, 2);
  await late.session.run("begin");
  await late.use([coupons[0]!], true);
  await till.use([coupons[1]!], true);
  t.equal(await step(), 1);
  await late.session.run("commit");
  // As if a day had passed since the calls.
  await psql.run(
    `update core.ledger_entry set recorded_at = recorded_at - interval '1 day';
     update core.posting_page set recorded_digest = null`,
  );
  await setZone(world, "pty_a", zoneOf(noonOffset() + daySeconds));
  const ask = async (text: string) => [...(await world.worker.rows(text))];
  const close = "select jobs.close_days(10) as closed";
  fits(t, await ask(close), [{ closed: 0 }]);
  const read = "select feed_waiting, feed_lag > 80000 as has_old, feed_lag = 0 as has_none from jobs.read_metrics()";
  fits(t, await ask(read), [{ feed_waiting: 1, has_old: true }], "the metrics count it");
  t.equal(await step(), 1);
  fits(t, await ask(read), [{ feed_waiting: 0, has_none: true }]);
  fits(t, await ask(close), [{ closed: 1 }]);
  fits(t, await listStatements(world), [{ entries: 2 }]);
});

t.test("a number that the sequencer has passed is refused, as after a sequence that was set back", async (t) => {
  world = await scenario(t);
  const { maker, makeCoupons, till } = world.a;
  const [coupon, late] = await makeCoupons(2);
  const psql = await world.openPsql();
  // A number in a gap is not passed: its transaction is late.
  await psql.run("begin; select pg_current_xact_id()");
  const [{ gap }] = (await psql.rows("select nextval('core.event_seq')::int as gap")) as [{ gap: number }];
  await makeCoupons(1);
  await takeStep(world.worker);
  await psql.rows("select setval('core.event_seq', $1)", [gap - 1]);
  fits(t, await till.redeem(late!), { status: 200 });
  await psql.rows("select setval('core.event_seq', (select max(event_seq) from rules.event))");
  await psql.run("rollback");
  // The numbers of a transaction that was rolled back are in no table.
  await psql.run("begin; select nextval('core.event_seq') from generate_series(1, 3); rollback");
  await makeCoupons(1);
  // A number in a gap may still be drawn.
  const isPassed = async () =>
    (await takeStep(world.worker)) === 0 && (await psql.rows("select from core.event_gap")).length === 0;
  await waitUntil("the gaps to be forgotten", isPassed, { withinMs: 60_000 });
  await psql.rows(
    `select setval('core.event_seq', max(n) - 3) from (
       select generate_series(1, max(event_seq)) from rules.event except select event_seq from rules.event) x (n)`,
  );
  let refused = 0;
  await waitUntil("a number above those of the sequencer", async () => {
    const isRedeemed = await till.redeem(coupon!).then(
      ({ status }) => status === 200,
      () => false,
    );
    refused += isRedeemed ? 0 : 1;
    return isRedeemed;
  });
  t.ok(refused >= 3, `${refused} calls drew a number that the sequencer has passed`);
  const { end: before } = await pullEvents<Event>(maker, 1_000);
  await world.steps.sequence();
  const { events } = await pullEvents<Event>(maker, 1_000);
  t.equal(events.at(-1)!.coupon_id, coupon!.id, `the event is in the feed, after ${before}`);
});
