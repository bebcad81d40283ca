// The feed: every committed event in it, once, at positions 1 to N, in the order of each coupon, whatever commits late,
// is rolled back, or is killed. FEED_EVENTS=100000, FEED_KILLS=50 and FEED_HOLD_S=600 make the long versions.
import t, { type Test } from "tap";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { createLog } from "../../../src/common/log.ts";
import { keepAnswering } from "../../../src/database/reconnecting.ts";
import { createSequencer } from "../../../src/worker/tasks/sequence.ts";
import { startTicker } from "../../../src/worker/ticker.ts";
import { findFaults, followSerially, openPuller, quantile, type Reading } from "../../support/readers.ts";
import { startService, type Running } from "../../support/service.ts";
import { makeStock, nameOf, openTill, write, type Committed, type Stock } from "../../support/writers.ts";

const size = (name: string, usual: number) => Number(process.env[name] ?? usual);
const none = { missing: 0, twice: 0, unknown: 0, turned: 0 };

const events = size("FEED_EVENTS", 10_000);
const kills = size("FEED_KILLS", 10);
const heldSeconds = size("FEED_HOLD_S", 4);
// How late events may be, on a machine that does nothing else; beside other tests the figure is only told.
const isMeasured = process.env["FEED_HOLD_S"] !== undefined;

let service: Running;
let stock: Stock;
t.before(async () => {
  service = await startService(t);
  stock = await makeStock(service, { again: 400, once: events + 300 * heldSeconds + 3_000 });
});

// A sequencer as the worker runs it. `failures` are those its ticker met.
function startSequencer(t: Test, name = "coupon test sequencer") {
  const failures: unknown[] = [];
  const never = new AbortController().signal;
  const database = keepAnswering(() => connect(service.address, { name, role: "coupon_worker", max: 1 }));
  const { sequence, pauseMs } = createSequencer({ database, stopping: never });
  const ticker = startTicker({
    name,
    everyMs: pauseMs,
    log: createLog("silent"),
    tick: () =>
      sequence().catch((error: unknown) => {
        failures.push(error);
        throw error;
      }),
  });
  const stop = async () => {
    await ticker.stop();
    await database.end();
  };
  t.teardown(stop);
  return { failures, stop };
}

async function readEnd() {
  const [row] = await service.owner.rows<{ cursor: string; position: string; event_seq: string }>(
    `select rules.format_cursor(coalesce(max(f.last_position), 0)) as cursor, coalesce(max(f.last_position), 0) as position,
            (select coalesce(max(e.event_seq), 0) from core.event e) as event_seq from core.feed f`,
  );
  return row!;
}

// Everything that was committed was pulled, and the feed has as many positions, without a hole.
async function checkFeed(t: Test, reading: Reading, committed: Committed, start: string): Promise<void> {
  t.strictSame(findFaults(reading, committed), none);
  const [feed] = await service.owner.rows(
    `select count(*)::int as events, min(position)::int as first, max(position)::int as last
     from core.feed_event
     where position > $1`,
    [start],
  );
  const [first, last] = [Number(start) + 1, Number(start) + committed.size];
  t.strictSame({ ...feed }, { events: committed.size, first, last }, "positions are 1 to N");
}

t.test("8 writers, commits up to 50 ms late, one in 5 rolled back", async (t) => {
  t.setTimeout(3_600_000);
  const { failures } = startSequencer(t);
  const start = await readEnd();
  const writing = write(service, stock, { events });
  const puller = await openPuller(service);
  t.teardown(puller.end);
  const [committed, reading, serial] = await Promise.all([
    writing,
    puller.follow(writing, start.cursor),
    followSerially(service, writing, start.event_seq),
  ]);
  await t.test("a puller with limit 7 misses nothing, gets nothing twice, and each coupon in its order", async (t) => {
    await checkFeed(t, reading, committed, start.position);
    t.strictSame(failures, []);
    t.comment(
      `${committed.size} events, commit to pullable p50 ${quantile(0.5, puller.seenAt, committed).toFixed()} ms, p95 ${quantile(0.95, puller.seenAt, committed).toFixed()} ms`,
    );
  });
  await t.test("pages that are read again are the same, byte for byte", async (t) => {
    t.equal(await puller.again(), 0);
  });
  await t.test("a bare serial number as cursor, in place of the sequencer, loses events", async (t) => {
    const faults = findFaults(serial, committed);
    t.ok(faults.missing > 0, `${faults.missing} lost`);
    t.match(faults, { twice: 0, unknown: 0 });
  });
});

t.test("two sequencers, started by mistake, change nothing", async (t) => {
  const started = [startSequencer(t), startSequencer(t)];
  const start = await readEnd();
  const writing = write(service, stock, { events: 1_000, holdMs: 20 });
  const puller = await openPuller(service);
  t.teardown(puller.end);
  const [committed, reading] = await Promise.all([writing, puller.follow(writing, start.cursor)]);
  await checkFeed(t, reading, committed, start.position);
  t.strictSame(
    started.flatMap(({ failures }) => failures),
    [],
    "and do not get in each other's way",
  );
});

t.test("a sequencer that is killed again and again in the middle of its steps loses nothing", async (t) => {
  t.setTimeout(600_000);
  startSequencer(t, "coupon test victim");
  const start = await readEnd();
  const login = connect(service.address, { name: "coupon test", max: 1 });
  t.teardown(() => login.end());
  let killed = 0;
  // What never holds the place of the sequencer cannot be killed in it.
  const deadline = performance.now() + kills * 2_000;
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
  const committed: Committed = new Map();
  const writing = (async () => {
    // At least until the last one was killed.
    for (let isLast = false; !isLast;) {
      isLast = isOver();
      for (const [id, at] of await write(service, stock, { events: 300, holdMs: 20 })) committed.set(id, at);
    }
    await killing;
  })();
  const puller = await openPuller(service);
  t.teardown(puller.end);
  const [reading] = await Promise.all([puller.follow(writing, start.cursor), writing]);
  await checkFeed(t, reading, committed, start.position);
  t.ok(killed >= kills, `${killed} killed`);
});

t.test("while somebody holds a write transaction open, the feed keeps flowing", async (t) => {
  t.setTimeout(3_600_000);
  startSequencer(t);
  const start = await readEnd();
  // One of ours, with an event that nobody sees yet, and one that has nothing to do with events.
  const [late, foreign] = [await openTill(service), openSession(service.address, { name: "psql" })];
  const puller = await openPuller(service);
  t.teardown(async () => Promise.all([puller.end(), late.session.end(), foreign.end()]));
  const committed: Committed = new Map();
  await foreign.run("begin; select pg_current_xact_id()");
  await late.session.run("begin");
  const written = await late.use((await makeStock(service, { again: 1, once: 0 })).again, true);
  const flowing = write(service, stock, { events: 300 * heldSeconds, perSecond: 300, holdMs: 0, rolledBack: 0.05 });
  const writing = (async () => {
    for (const [id, at] of await flowing) committed.set(id, at);
    // The reader gets all of these before the late one is there to be read.
    const isRead = () => [...committed.keys()].every((name) => puller.seenAt.has(name));
    for (const since = performance.now(); !isRead() && performance.now() < since + 20_000;) await sleep(50);
    t.ok(isRead(), "all that was committed is read while they are open");
    const [waiting] = await service.owner.rows<{ gaps: number }>("select count(*)::int as gaps from core.event_gap");
    t.ok(
      waiting!.gaps > 1,
      `${waiting!.gaps} numbers are awaited: that of the late event, and those of rolled back ones`,
    );
    const [p50, p95] = [quantile(0.5, puller.seenAt, committed), quantile(0.95, puller.seenAt, committed)];
    if (isMeasured) t.ok(p95 <= 500, `commit to pullable: p95 ${p95.toFixed()} ms`);
    t.comment(
      `${committed.size} events at 300/s beside open write transactions: p50 ${p50.toFixed()} ms, p95 ${p95.toFixed()} ms`,
    );
    await late.end("commit", written, committed);
    await foreign.run("rollback");
  })();
  const [reading] = await Promise.all([puller.follow(writing, start.cursor), writing]);
  await checkFeed(t, reading, committed, start.position);
  t.equal(nameOf(reading.events.at(-1)!), written[0]!.name, "and the late event comes when it is committed");
});

// One step, by hand.
async function step(database: Database) {
  const [row] = await database.rows<{ sequenced: number; is_drained: boolean }>(
    "select * from jobs.sequence_events(100)",
  );
  return row!.sequenced;
}

function openWorker(t: Test): Database {
  const worker = connect(service.address, { name: "coupon test worker", role: "coupon_worker", max: 1 });
  t.teardown(() => worker.end());
  return worker;
}

// Two connections to write from, with a coupon for each, and nothing left to sequence.
async function openPair(t: Test, worker: Database) {
  const [older, younger] = [await openTill(service), await openTill(service)];
  t.teardown(() => Promise.all([older.session.end(), younger.session.end()]));
  const [first, second] = (await makeStock(service, { again: 2, once: 0 })).again;
  const committed: Committed = new Map();
  await step(worker);
  return { older, younger, first: first!, second: second!, committed };
}

t.test(
  "an event is waited for although its transaction is the youngest of all and its number the lowest",
  async (t) => {
    const worker = openWorker(t);
    const { older, younger, first, second, committed } = await openPair(t, worker);
    await older.session.run("begin; select pg_current_xact_id()");
    await younger.session.run("begin");
    const late = await younger.use([first], true);
    await older.end("commit", await older.use([second], true), committed);
    // To every snapshot from here on the younger one is the oldest that runs.
    t.strictSame([await step(worker), await step(worker), await step(worker)], [1, 0, 0]);
    await younger.end("commit", late, committed);
    t.equal(await step(worker), 1);
    const rows = await service.owner.rows<{ name: string }>(
      "select rules.format_id('evt', event_id) as name from core.feed_event order by position desc limit 2",
    );
    t.strictSame(rows.map(({ name }) => name).reverse(), [...committed.keys()]);
  },
);

t.test(
  "after a restore into a server whose transaction ids are lower, a late event is still looked for, and gaps from before are forgotten",
  async (t) => {
    const worker = openWorker(t);
    const { older, younger, first, second, committed } = await openPair(t, worker);
    await younger.session.run("begin");
    const late = await younger.use([first], true);
    await older.use([second], true);
    t.equal(await step(worker), 1);
    await service.owner.rows("update core.sequencer set looked_with = '9000000000:9000000000:'");
    await service.owner.rows("insert into core.event_gap (event_seq, seen_before) values (-1, '9000000000')");
    await younger.end("commit", late, committed);
    t.equal(await step(worker), 1);
    t.equal((await service.owner.rows("select from core.event_gap where event_seq = -1")).length, 0);
  },
);

t.test("a step in a transaction that has written is refused: it could not tell what is late", async (t) => {
  const session = openSession(service.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => session.end());
  await session.run("begin; select pg_current_xact_id()");
  await t.rejects(step(session), { code: "25001" });
});

t.test("numbers of rolled back transactions are forgotten when nobody can bring them any more", async (t) => {
  const worker = openWorker(t);
  const till = await openTill(service);
  t.teardown(() => till.session.end());
  const { again } = await makeStock(service, { again: 2, once: 0 });
  const countGaps = async () => (await service.owner.rows("select from core.event_gap")).length;
  await till.session.run("begin");
  await till.use([again[0]!], true);
  await till.session.run("rollback");
  await till.use([again[1]!], true);
  await step(worker);
  t.ok((await countGaps()) > 0, "they are awaited at first");
  // As soon as whoever was writing beside them, anywhere on the server, is done.
  for (let gaps = Infinity; gaps > 0; await sleep(50)) {
    await step(worker);
    gaps = await countGaps();
  }
});

t.test("a movement recorded on a day that is closed already goes to the first open one", async (t) => {
  const worker = openWorker(t);
  const till = await openTill(service);
  t.teardown(() => till.session.end());
  const { again } = await makeStock(service, { again: 2, once: 0 });
  await till.use([again[0]!], true);
  await step(worker);
  const days = () =>
    service.owner.rows<{ open_on: string }>(
      `select to_char(b.open_on, 'YYYY-MM-DD') as open_on, rules.close_day(b.tenant_id, b.party_id, b.open_on)
       from core.ledger_book b`,
    );
  await days();
  await service.owner.rows("update core.ledger_book set open_on = open_on + 1");
  await till.use([again[1]!], true);
  await t.resolves(step(worker), "the sequencer is not stopped by it");
  const postings = await service.owner.rows<{ is_open: boolean }>(
    `select p.business_date = b.open_on as is_open from core.posting p join core.ledger_book b on (b.tenant_id, b.party_id) = (p.tenant_id, p.distributor_id)
     join core.event e on (e.tenant_id, e.event_id) = (p.tenant_id, p.entry_id) order by e.event_seq desc limit 2`,
  );
  t.strictSame(
    postings.map(({ is_open }) => is_open),
    [true, false],
  );
});
