// A distributor whose events wait because its rows make the sequencer fail: what it costs the others, and how it
// catches up. test/worker/poisoned-rows.test.ts has the kinds of rows.
import t, { type Test } from "tap";
import { openSession } from "../../../src/database/connect.ts";
import { createUnsticker } from "../../../src/worker/tasks/stuck.ts";
import { noonOffset, setZone, zoneOf } from "../../support/business-days.ts";
import { readCounts } from "../../support/count-reads.ts";
import { postOk } from "../../support/client.ts";
import { fits } from "../../support/fits.ts";
import { sequenceEvents, takeStep } from "../../support/sequence-events.ts";
import { newRequestId, startService } from "../../support/service.ts";
import { createStubLog } from "../../support/stub.ts";
import { makeStock, openTill } from "../../support/writers.ts";

const unknown = "Asia/Atlantis";

async function start(t: Test) {
  const service = await startService(t);
  const psql = openSession(service.address, { name: "psql" });
  const worker = openSession(service.address, { name: "coupon test worker", role: "coupon_worker" });
  const { logger, log } = createStubLog();
  const stopping = new AbortController().signal;
  const { logChanges } = createUnsticker({ sequencer: worker, database: worker, log: logger, stopping });
  t.teardown(() => Promise.all([psql.end(), worker.end()]));
  await psql.run("set session_replication_role = replica");
  await setZone(service, "pty_a", zoneOf(noonOffset()));

  const [one, other] = await Promise.all([
    service.makeBatch(service.as("ak_a"), "tpl_fixed", 20),
    service.makeBatch(service.as("ak_a_stranger"), "tpl_a2s", 5),
  ]);
  await sequenceEvents(worker);
  const redeem = async (from: typeof one, by: string, merchant: string) =>
    postOk(service.as(by), "/v1/coupons/redeem", { request_id: newRequestId(), coupon: from.codes.shift(), merchant });
  return {
    service,
    psql,
    worker,
    log,
    logChanges,
    poison: () => psql.run(`update core.party set time_zone = '${unknown}' where external_id = 'pty_a'`),
    cure: () => setZone(service, "pty_a", zoneOf(noonOffset())),
    redeem: () => redeem(one, "ak_a", "mch_a"),
    redeemElsewhere: () => redeem(other, "ak_a_stranger", "mch_a2s"),
    /** One attempt after the rest. Returns whether there was something to try. */
    async retry(limit: number): Promise<boolean> {
      await psql.run("update core.stuck_work set tried_at = tried_at - interval '6 seconds'");
      return (await worker.rows<{ done: number }>("select jobs.try_stuck_work($1) as done", [limit]))[0]!.done > 0;
    },
    /** The events in the feed of a tenant, in order, and those of the other tables that name the numbers. */
    async look(tenant = "ten_a") {
      const [row] = await psql.rows<{ feed: number[]; posted: number; waiting: number; stuck: number }>(
        `select array(select e.event_seq::int from rules.feed_event e where e.tenant_id = t.tenant_id order by position)
                  as feed,
                (select count(*)::int from rules.posting p where p.tenant_id = t.tenant_id) as posted,
                (select count(*)::int from core.event_gap g where g.tenant_id = t.tenant_id) as waiting,
                (select count(*)::int from core.stuck_work s where s.tenant_id = t.tenant_id) as stuck
         from core.tenant t where t.external_id = $1`,
        [tenant],
      );
      return {
        ...row!,
        feed: row!.feed.length,
        isAscending: row!.feed.every((n, i, all) => i === 0 || n > all[i - 1]!),
      };
    },
  };
}

t.test("a cured party catches up in steps and in order; its newer events wait until it has", async (t) => {
  const { service, worker, log, logChanges, poison, cure, redeem, redeemElsewhere, retry, look } = await start(t);
  const report = openSession(service.address, { name: "coupon test report", role: "coupon_report" });
  t.teardown(() => report.end());
  const none = { feed: 0, posted: 0, waiting: 0, stuck: 0, isAscending: true };
  await redeem();
  await takeStep(worker);
  await poison();
  for (let times = 0; times < 4; times += 1) {
    await redeem();
    await redeemElsewhere();
    t.equal(await takeStep(worker), 2);
  }
  t.strictSame(await look(), { feed: 1, posted: 1, waiting: 4, stuck: 1, isAscending: true });
  t.strictSame(await look("ten_a2"), { ...none, feed: 4, posted: 4 });
  fits(t, await report.rows("select * from report.stuck_work"), [
    { tenant: "ten_a", party: "pty_a", work: "events", subject: "pty_a", waiting_events: "4" },
  ]);
  await logChanges();
  t.equal(await retry(3), true, "an attempt that fails");
  fits(t, await look(), { feed: 1, waiting: 4, stuck: 1 });
  t.equal((await worker.rows<{ done: number }>("select jobs.try_stuck_work(3) as done"))[0]!.done, 0, "it rests");

  await cure();
  t.equal(await retry(3), true);
  fits(t, await look(), { feed: 4, posted: 4, waiting: 1, stuck: 1 });
  await redeem();
  t.equal(await takeStep(worker), 1);
  fits(t, await look(), { feed: 4, waiting: 2, stuck: 1 }, "the newer one waits");
  t.equal(await retry(3), true);
  fits(t, await look(), { feed: 6, waiting: 0, stuck: 1 });
  t.equal(await retry(3), true, "nothing waits, and its day can be closed");
  t.equal(await retry(3), false);
  await redeem();
  await takeStep(worker);
  t.strictSame(await look(), { ...none, feed: 7, posted: 7 });

  await logChanges();
  const stuck = { work: "events", tenant: "ten_a", party: "pty_a", subject: "pty_a" };
  for (const line of log) delete line["time"];
  t.strictSame(log, [
    {
      level: 50,
      ...stuck,
      reason: `time zone "${unknown}" not recognized`,
      msg: "work is stuck; only this party waits",
    },
    { level: 30, ...stuck, msg: "work is no longer stuck" },
  ]);
});

t.test("an event of a stuck party that is committed late waits too, and is not forgotten", async (t) => {
  const { service, psql, worker, poison, cure, redeem, retry, look } = await start(t);
  const till = await openTill(service);
  t.teardown(() => till.session.end());
  const { again } = await makeStock(service, { again: 1, once: 0 });
  await takeStep(worker);
  await poison();
  await till.session.run("begin");
  await till.use([again[0]!], true);
  await redeem();
  t.equal(await takeStep(worker), 1);
  fits(t, await look(), { feed: 0, waiting: 1, stuck: 1 });
  await till.session.run("commit");
  t.equal(await takeStep(worker), 1);
  await takeStep(worker);
  fits(t, await look(), { waiting: 2 });
  t.strictSame([...(await psql.rows("select from core.event_gap where drawn_before is not null"))], []);
  await cure();
  for (let times = 0; times < 3; times += 1) await retry(10);
  fits(t, await look(), { feed: 2, posted: 2, waiting: 0, stuck: 0, isAscending: true });
});

t.test("events that wait cost the steps of the others nothing", async (t) => {
  const { psql, worker, poison, redeem } = await start(t);
  await poison();
  const count = async () => {
    const reads: number[] = [];
    for (const text of ["jobs.sequence_events(1000)", "jobs.close_days(10)", "jobs.read_metrics()"]) {
      await worker.run("begin");
      const before = await readCounts(worker);
      await worker.rows(`select ${text}`);
      reads.push((await readCounts(worker)).rows - before.rows);
      await worker.run("commit");
    }
    return reads;
  };
  await redeem();
  await takeStep(worker);
  await count();
  const before = await count();
  // More that wait, as if they had been written.
  await psql.run(
    `insert into core.event_gap (event_seq, tenant_id, party_id)
     select event_seq - n, tenant_id, party_id from core.event_gap, generate_series(1, 2000) n`,
  );
  t.strictSame(await count(), before);
  await psql.run("delete from core.event_gap where event_seq not in (select event_seq from rules.event)");
});
