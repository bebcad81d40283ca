// Missing numbers of events: how the sequencer forgets those that were rolled back, and that a business day waits for
// those that commit late.
import t from "tap";
import { openSession } from "../../../src/database/connect.ts";
import {
  daySeconds,
  keepBusinessDays,
  listStatements,
  noonOffset,
  setZone,
  zoneOf,
} from "../../support/business-days.ts";
import { fits } from "../../support/fits.ts";
import { startService, type Running } from "../../support/service.ts";
import { openWorker } from "../../support/subscribers.ts";
import { takeStep } from "../../support/sequence-events.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { makeStock, openTill } from "../../support/writers.ts";

let service: Running;
t.before(async () => {
  service = await startService(t);
});

t.test("gaps of rolled back transactions are forgotten once no running transaction can fill them", async (t) => {
  const worker = openWorker(t, service);
  const till = await openTill(service);
  t.teardown(() => till.session.end());
  const { again } = await makeStock(service, { again: 2, once: 0 });
  const countGaps = async () => (await service.owner.rows("select from core.event_gap")).length;
  const other = openSession(service.address, { name: "psql" });
  t.teardown(() => other.end());
  await other.run("begin; select pg_current_xact_id()");
  await till.session.run("begin");
  await till.use([again[0]!], true);
  await till.session.run("rollback");
  await till.use([again[1]!], true);
  await takeStep(worker);
  await takeStep(worker);
  t.ok((await countGaps()) > 0, "they are gaps while a transaction could still fill them");
  await other.run("commit");
  // When all transactions that wrote at the same time, anywhere on the server, have ended.
  const areForgotten = async () => {
    await takeStep(worker);
    return (await countGaps()) === 0;
  };
  await waitUntil("the gaps to be forgotten", areForgotten, { everyMs: 50 });
});

t.test("an idle step writes nothing, even while a gap waits for its transaction", async (t) => {
  const worker = openSession(service.address, { name: "coupon test worker", role: "coupon_worker" });
  const till = await openTill(service);
  t.teardown(() => Promise.all([worker.end(), till.session.end()]));
  const { again } = await makeStock(service, { again: 2, once: 0 });
  const other = await openTill(service);
  t.teardown(() => other.session.end());
  await takeStep(worker);
  await till.session.run("begin");
  await till.use([again[0]!], true);
  await other.use([again[1]!], true);
  t.equal(await takeStep(worker), 1);
  await worker.run("begin");
  t.equal(await takeStep(worker), 0);
  const [row] = await worker.rows<{ id: string | null }>("select pg_current_xact_id_if_assigned()::text as id");
  t.equal(row!.id, null);
  await worker.run("commit");
  t.ok((await service.owner.rows("select from core.event_gap")).length > 0);
  await till.session.run("rollback");
});

t.test("a gap is forgotten if no transaction older than it runs, and not before", async (t) => {
  const session = openSession(service.address, { name: "psql", role: "coupon_owner" });
  t.teardown(() => session.end());
  await takeStep(openWorker(t, service));
  await session.run("begin; delete from core.event_gap");
  const [row] = await session.rows<{ id: number }>("select pg_current_xact_id()::text::float as id");
  const { id } = row!;
  const list = async () => {
    const gaps = await session.rows<{ drawn_before: string }>(
      "select g.drawn_before::text from core.event_gap g order by g.drawn_before",
    );
    return gaps.map(({ drawn_before }) => Number(drawn_before));
  };
  const forget = async (oldestRunning: number) => {
    await session.rows("select rules.forget_gaps($1::text::xid8)", [String(oldestRunning)]);
    return list();
  };
  await session.rows(
    `insert into core.event_gap (event_seq, drawn_before)
     select s.high_seq + n, g.id::xid8
     from core.sequencer s, unnest($1::text[]) with ordinality g (id, n)`,
    [[id - 1, id, id + 1].map(String)],
  );
  t.strictSame(await list(), [id - 1, id, id + 1]);
  t.strictSame(await forget(id - 2), [id - 1, id], "one from another server, before a restore, is forgotten");
  t.strictSame(await forget(id - 1), [id]);
  t.strictSame(await forget(id), []);
  await session.run("rollback");
});

t.test("a day that is over stays open for an entry that was committed late, until it is sequenced", async (t) => {
  const service = await startService(t);
  const books = await keepBusinessDays(t, service);
  const psql = openSession(service.address, { name: "psql" });
  const [late, till] = [await openTill(service), await openTill(service)];
  t.teardown(() => Promise.all([psql.end(), late.session.end(), till.session.end()]));
  await setZone(service, "pty_a", zoneOf(noonOffset()));
  const [first, second] = (await makeStock(service, { again: 2, once: 0 })).again;
  await books.sequence();
  await late.session.run("begin");
  await late.use([first!], true);
  await till.use([second!], true);
  t.equal(await takeStep(books.worker), 1);
  await late.session.run("commit");
  // As if a day had passed since the calls.
  await psql.run("set session_replication_role = replica");
  await psql.run("update core.ledger_entry set recorded_at = recorded_at - interval '1 day'");
  await setZone(service, "pty_a", zoneOf(noonOffset() + daySeconds));
  const close = async () => [...(await books.worker.rows("select jobs.close_days(10) as closed"))];
  fits(t, await close(), [{ closed: 0 }]);
  const read = "select feed_waiting, feed_lag > 80000 as has_old, feed_lag = 0 as has_none from jobs.read_metrics()";
  fits(t, await books.worker.rows(read), [{ feed_waiting: 1, has_old: true }], "the metrics count it");
  t.equal(await takeStep(books.worker), 1);
  fits(t, await books.worker.rows(read), [{ feed_waiting: 0, has_none: true }]);
  fits(t, await close(), [{ closed: 1 }]);
  fits(t, await listStatements(service), [{ entries: 2 }]);
});
