// Single steps of the sequencer: late events, and business days. How gaps are forgotten is in event-gaps.test.ts, the
// load tests are in sequence.test.ts.
import t, { type Test } from "tap";
import { openSession } from "../../../src/database/connect.ts";
import type { Database } from "../../../src/database/types.ts";
import { createSequencer } from "../../../src/worker/tasks/sequence.ts";
import { closeOpenDays } from "../../support/business-days.ts";
import { startService, type Running } from "../../support/service.ts";
import { pullEvents } from "../../support/pull-events.ts";
import { untilBlocked } from "../../support/race.ts";
import { takeStep } from "../../support/sequence-events.ts";
import { openWorker } from "../../support/subscribers.ts";
import { makeStock, openTill, type Committed } from "../../support/writers.ts";

let service: Running;
t.before(async () => {
  service = await startService(t);
});

// Two tills with a coupon each, and nothing left to sequence.
async function openPair(t: Test, worker: Database) {
  const [older, younger] = [await openTill(service), await openTill(service)];
  t.teardown(() => Promise.all([older.session.end(), younger.session.end()]));
  const [first, second] = (await makeStock(service, { again: 2, once: 0 })).again;
  const committed: Committed = new Map();
  await takeStep(worker);
  return { older, younger, first: first!, second: second!, committed };
}

t.test("an event is waited for even if its number is the lowest and its transaction the youngest", async (t) => {
  const worker = openWorker(t, service);
  const { older, younger, first, second, committed } = await openPair(t, worker);
  await older.session.run("begin; select pg_current_xact_id()");
  await younger.session.run("begin");
  const late = await younger.use([first], true);
  await older.end("commit", await older.use([second], true), committed);
  // From here on, every snapshot sees the younger transaction as the oldest running one.
  t.strictSame([await takeStep(worker), await takeStep(worker), await takeStep(worker)], [1, 0, 0]);
  await younger.end("commit", late, committed);
  t.equal(await takeStep(worker), 1);
  const rows = await service.owner.rows<{ name: string }>(
    "select rules.format_id('evt', event_id) as name from rules.feed_event order by position desc limit 2",
  );
  t.strictSame(rows.map(({ name }) => name).reverse(), [...committed.keys()]);
});

t.test("late events beyond the limit of a step are taken by the next steps", async (t) => {
  const worker = openWorker(t, service);
  const { older, younger, first, second, committed } = await openPair(t, worker);
  const { again } = await makeStock(service, { again: 2, once: 0 });
  await takeStep(worker);
  await younger.session.run("begin");
  const late = await younger.use([first, ...again], true);
  await older.use([second], true);
  t.equal(await takeStep(worker), 1);
  await younger.end("commit", late, committed);
  t.strictSame([await takeStep(worker, 2), await takeStep(worker, 2), await takeStep(worker, 2)], [2, 1, 0]);
  const rows = await service.owner.rows<{ name: string; on_page: number }>(
    `select rules.format_id('evt', event_id) as name, (position - first_position)::int as on_page
     from rules.feed_event order by position desc limit 4`,
  );
  const names = rows.reverse().map(({ name }) => name);
  t.strictSame(names.slice(1), [...committed.keys()]);
  t.strictSame(
    rows.map(({ on_page }) => on_page),
    [0, 0, 1, 0],
    "two on one page, the third on the next",
  );
  const { events } = await pullEvents<{ event_id: string }>(service.as("ak_a"), 1_000);
  t.strictSame(
    events.slice(-4).map(({ event_id }) => event_id),
    names,
    "a reader gets them in the order of their positions, not of their numbers",
  );
});

t.test("a number that is missing in a step with a late event is waited for too", async (t) => {
  const worker = openWorker(t, service);
  const { older, younger, first, second, committed } = await openPair(t, worker);
  const youngest = await openTill(service);
  t.teardown(() => youngest.session.end());
  const [third, fourth] = (await makeStock(service, { again: 2, once: 0 })).again;
  await takeStep(worker);
  for (const till of [younger, youngest]) await till.session.run("begin");
  const late = await younger.use([first], true);
  await older.use([second], true);
  t.equal(await takeStep(worker), 1);
  const later = await youngest.use([third!], true);
  await older.use([fourth!], true);
  await younger.end("commit", late, committed);
  t.equal(await takeStep(worker), 2, "the late event and a new one, with a missing number between");
  await youngest.end("commit", later, committed);
  t.strictSame([await takeStep(worker), await takeStep(worker)], [1, 0]);
});

t.test(
  "after a restore into a server with lower transaction ids, late events are found and old gaps are forgotten",
  async (t) => {
    const worker = openWorker(t, service);
    const { older, younger, first, second, committed } = await openPair(t, worker);
    await younger.session.run("begin");
    const late = await younger.use([first], true);
    await older.use([second], true);
    t.equal(await takeStep(worker), 1);
    await service.owner.rows("update core.sequencer set last_snapshot = '9000000000:9000000000:'");
    await service.owner.rows("insert into core.event_gap (event_seq, drawn_before) values (9000000000, '9000000000')");
    await younger.end("commit", late, committed);
    t.equal(await takeStep(worker), 1);
    t.equal((await service.owner.rows("select from core.event_gap where event_seq = 9000000000")).length, 0);
  },
);

t.test("a number that another session is sequencing without the lock does not become missing", async (t) => {
  const [first, second] = [
    openSession(service.address, { name: "psql" }),
    openSession(service.address, { name: "psql" }),
  ];
  t.teardown(() => Promise.all([first.end(), second.end()]));
  await takeStep(openWorker(t, service));
  await first.run(
    `begin;
     update core.sequencer
     set step = step + 1, after_seq = high_seq, high_seq = nextval('core.event_seq'), late_seqs = '{}'`,
  );
  const adding = second.rows("insert into core.event_gap select last_value, '1' from core.event_seq");
  // Before the commit, so that the refusal finds somebody waiting for it.
  const refused = t.rejects(adding, { code: "23514", constraint_name: "gap_is_above_the_sequencer" });
  await untilBlocked(service, 1);
  await first.run("commit");
  await refused;
});

t.test("a stopping sequencer takes no further step, although events are left", async (t) => {
  const worker = openWorker(t, service);
  const { id } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1_100);
  await takeStep(worker, 1_000);
  await service.admin.rows("select admin.void_batch('ten_a', $1, 'to have events')", [id]);
  t.equal(await createSequencer({ database: worker, stopping: AbortSignal.abort() }).sequence(), 1_000);
  t.equal(await createSequencer({ database: worker, stopping: new AbortController().signal }).sequence(), 100);
});

t.test("a step in a transaction that has written is refused: it could not tell which events are late", async (t) => {
  const session = openSession(service.address, { name: "coupon test", role: "coupon_worker" });
  t.teardown(() => session.end());
  await session.run("begin; select pg_current_xact_id()");
  await t.rejects(takeStep(session), { code: "25001" });
});

t.test("a ledger entry recorded on an already closed day is posted to the first open day", async (t) => {
  const worker = openWorker(t, service);
  const till = await openTill(service);
  t.teardown(() => till.session.end());
  const { again } = await makeStock(service, { again: 2, once: 0 });
  await till.use([again[0]!], true);
  await takeStep(worker);
  await service.owner.rows(closeOpenDays);
  await till.use([again[1]!], true);
  await t.resolves(takeStep(worker), "the sequencer goes on");
  const postings = await service.owner.rows<{ is_open: boolean }>(
    `select p.business_date = b.open_on as is_open
     from rules.posting p
     join core.ledger_book b on (b.tenant_id, b.party_id) = (p.tenant_id, p.distributor_id)
     join rules.event e on (e.tenant_id, e.event_id) = (p.tenant_id, p.entry_id)
     order by e.event_seq desc
     limit 2`,
  );
  t.strictSame(
    postings.map(({ is_open }) => is_open),
    [true, false],
  );
});
