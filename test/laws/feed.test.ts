// The feed: every committed event in it, once, at positions 1 to N, in the order of each coupon, whatever commits late,
// is rolled back, or is killed. FEED_EVENTS=100000, FEED_KILLS=50 and FEED_HOLD_S=600 make the long versions.
import t, { type Test } from "tap";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, openSession } from "../../src/database.ts";
import { createLog } from "../../src/log.ts";
import { keepAnswering } from "../../src/steady.ts";
import { createSequencer } from "../../src/tasks/sequence.ts";
import { startTicker } from "../../src/ticker.ts";
import { findFaults, followSerially, openPuller, quantile, type Reading } from "../support/readers.ts";
import { startService, type Running } from "../support/service.ts";
import { makeReissuable, openTill, write, type Committed } from "../support/writers.ts";

const size = (name: string, usual: number) => Number(process.env[name] ?? usual);
const none = { missing: 0, twice: 0, unknown: 0, turned: 0 };
type Coupons = Awaited<ReturnType<typeof makeReissuable>>;

let service: Running;
let coupons: Coupons;
t.before(async () => {
  service = await startService(t);
  coupons = await makeReissuable(service, 600);
});

// A sequencer as the worker runs it. `failures` are those its ticker met.
function startSequencer(t: Test, name = "coupon test sequencer") {
  const failures: unknown[] = [];
  const never = new AbortController().signal;
  const database = keepAnswering(() => connect(service.address, { name, role: "coupon_worker", max: 1 }));
  const { sequence, pauseMs } = createSequencer({ database, stopping: never });
  const ticker = startTicker({
    name, everyMs: pauseMs, log: createLog("silent"),
    tick: () => sequence().catch((error: unknown) => { failures.push(error); throw error; }),
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
    `select rules.position_cursor(coalesce(max(f.last_position), 0)) as cursor, coalesce(max(f.last_position), 0) as position,
            (select coalesce(max(e.event_seq), 0) from core.event e) as event_seq from core.feed f`);
  return row!;
}

// Everything that was committed was pulled, and the feed has as many positions, without a hole.
async function checkFeed(t: Test, reading: Reading, committed: Committed, start: string): Promise<void> {
  t.strictSame(findFaults(reading, committed), none);
  const [feed] = await service.owner.rows(
    `select count(*)::int as events, min(position)::int as first, max(position)::int as last, (select count(*)::int from core.event_gap) as gaps
     from core.feed_event where position > $1`, [start]);
  const [first, last] = [Number(start) + 1, Number(start) + committed.size];
  t.strictSame({ ...feed }, { events: committed.size, first, last, gaps: 0 }, "positions are 1 to N, and no number is awaited any more");
}

t.test("8 writers, commits up to 50 ms late, one in 5 rolled back", async (t) => {
  t.setTimeout(3_600_000);
  const { failures } = startSequencer(t);
  const start = await readEnd();
  const writing = write(service, coupons, { events: size("FEED_EVENTS", 10_000) });
  const puller = await openPuller(service);
  t.teardown(puller.end);
  const [committed, reading, serial] = await Promise.all([writing, puller.follow(writing, start.cursor), followSerially(service, writing, start.event_seq)]);
  await t.test("a puller with limit 7 misses nothing, gets nothing twice, and each coupon in its order", async (t) => {
    await checkFeed(t, reading, committed, start.position);
    t.strictSame(failures, []);
    t.comment(`${committed.size} events, commit to pullable p50 ${quantile(0.5, puller.seenAt, committed).toFixed()} ms, p95 ${quantile(0.95, puller.seenAt, committed).toFixed()} ms`);
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
  const writing = write(service, coupons, { events: 1_000, holdMs: 20 });
  const puller = await openPuller(service);
  t.teardown(puller.end);
  const [committed, reading] = await Promise.all([writing, puller.follow(writing, start.cursor)]);
  await checkFeed(t, reading, committed, start.position);
  t.strictSame(started.flatMap(({ failures }) => failures), [], "and do not get in each other's way");
});

t.test("a sequencer that is killed again and again in the middle of its steps loses nothing", async (t) => {
  t.setTimeout(600_000);
  const kills = size("FEED_KILLS", 10);
  startSequencer(t, "coupon test victim");
  const start = await readEnd();
  const login = connect(service.address, { name: "coupon test", max: 1 });
  t.teardown(() => login.end());
  let killed = 0;
  const killing = (async () => {
    while (killed < kills) {
      const rows = await login.rows(
        `select pg_terminate_backend(a.pid) from pg_stat_activity a
         where a.application_name = 'coupon test victim' and a.state = 'active' and a.datname = current_database()
           and exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'advisory')`);
      killed += rows.length;
    }
  })();
  const committed: Committed = new Map();
  const writing = (async () => {
    // At least until the last one was killed.
    for (let isOver = false; !isOver; ) {
      isOver = killed >= kills;
      for (const [id, at] of await write(service, coupons, { events: 300, holdMs: 20 })) committed.set(id, at);
    }
    await killing;
  })();
  const puller = await openPuller(service);
  t.teardown(puller.end);
  const [reading] = await Promise.all([puller.follow(writing, start.cursor), writing]);
  await checkFeed(t, reading, committed, start.position);
  t.equal(killed >= kills, true);
});

t.test("while somebody holds a write transaction open, the feed keeps flowing", async (t) => {
  t.setTimeout(3_600_000);
  const seconds = size("FEED_HOLD_S", 4);
  startSequencer(t);
  const start = await readEnd();
  // One of ours, with an event that nobody sees yet, and one that has nothing to do with events.
  const [late, foreign] = [await openTill(service), openSession(service.address, { name: "psql" })];
  const puller = await openPuller(service);
  t.teardown(async () => Promise.all([puller.end(), late.session.end(), foreign.end()]));
  const committed: Committed = new Map();
  await foreign.run("begin; select pg_current_xact_id()");
  await late.session.run("begin");
  const [reserved, ...others] = coupons;
  const written = await late.use([reserved!], true);
  const flowing = write(service, others, { events: 300 * seconds, perSecond: 300, holdMs: 0, rolledBack: 0.05 });
  const writing = (async () => {
    for (const [id, at] of await flowing) committed.set(id, at);
    // The reader has all of these before the late one is there to be read.
    await sleep(700);
    const [waiting] = await service.owner.rows<{ gaps: number }>("select count(*)::int as gaps from core.event_gap");
    t.ok(waiting!.gaps > 1, `${waiting!.gaps} numbers are awaited: that of the late event, and those of rolled back ones`);
    const [p50, p95] = [quantile(0.5, puller.seenAt, committed), quantile(0.95, puller.seenAt, committed)];
    t.ok(p95 <= 500, `commit to pullable: p95 ${p95.toFixed()} ms`);
    t.comment(`${committed.size} events at 300/s beside open write transactions: p50 ${p50.toFixed()} ms, p95 ${p95.toFixed()} ms`);
    await late.end("commit", written, committed);
    await foreign.run("rollback");
  })();
  const [reading] = await Promise.all([puller.follow(writing, start.cursor), writing]);
  await checkFeed(t, reading, committed, start.position);
  t.equal(reading.events.at(-1)?.event_id, written[0]?.eventId, "and the late event comes when it is committed");
});
