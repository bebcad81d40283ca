// Business days with real midnights: the time zones of distributors are chosen so that midnight comes during the test
// (see test/support/business-days.ts). Midnights under load are in midnights.test.ts.
import t, { type Test } from "tap";
import { openSession } from "../../../src/database/connect.ts";
import {
  daySeconds,
  keepBusinessDays,
  listStatements,
  midnightOffset,
  noonOffset,
  posixOffset,
  setZone,
  zoneOf,
} from "../../support/business-days.ts";
import { readCsv } from "../../support/csv.ts";
import { fits } from "../../support/fits.ts";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { dateOf, nowSeconds, redeem, secondAfter, untilMoment } from "../../support/midnights.ts";
import { arrangeBefore, untilBlocked } from "../../support/race.ts";
import { startService, type Running } from "../../support/service.ts";
import { waitUntil } from "../../support/wait-until.ts";

// These tests mostly wait for the clock.
t.jobs = 4;
const beside = { buffered: true };

// The redemptions by business day, oldest first. Their times decide: on a busy machine one may come after a midnight.
async function listByDay(service: Running, midnights: [number, number]): Promise<string[][]> {
  const rows = await service.owner.rows<{ redemption: string; day: number }>(
    `select l.redemption, (l.recorded_at >= to_timestamp($1))::int + (l.recorded_at >= to_timestamp($2))::int as day
     from report.ledger l
     order by l.recorded_at`,
    midnights,
  );
  return [0, 1, 2].map((wanted) => rows.filter(({ day }) => day === wanted).map(({ redemption }) => redemption));
}

t.test("after an outage over two midnights both days close in order, each with its own entries", beside, async (t) => {
  const service = await startService(t);
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 6);
  // A midnight, and 4 s later the clocks go forward to 2 s before the next one.
  const midnight = nowSeconds() + 4;
  const offset = midnightOffset(midnight);
  const day = new Date((midnight + offset) * 1000);
  const dayOfYear = Math.round((day.getTime() - Date.UTC(day.getUTCFullYear(), 0, 1)) / (daySeconds * 1000));
  await setZone(
    service,
    "pty_a",
    `<S>${posixOffset(offset)}<D>${posixOffset(offset + daySeconds - 6)}` +
      `,${dayOfYear}/0:0:4,${(dayOfYear + 180) % 365}/0`,
  );

  const redeemSome = async (count: number) => {
    for (let index = 0; index < count; index += 1) await redeem(service, "ak_a", codes.pop()!, "mch_a");
  };
  await redeemSome(2);
  await untilMoment(service, midnight);
  await redeemSome(1);
  await untilMoment(service, midnight + 4);
  await redeemSome(2);
  await untilMoment(service, midnight + 6);
  await redeemSome(1);
  await untilMoment(service, midnight + 6 + 5);
  const redeemed = await listByDay(service, [midnight, midnight + 6]);

  const books = await keepBusinessDays(t, service);
  await books.close();
  const dates = [-1, 0, 1].map((days) => dateOf(midnight + offset + days * daySeconds));
  const statements = await listStatements(service);
  t.strictSame(
    statements.map(({ date, entries, is_ready }) => [date, entries, is_ready]),
    [
      [dates[0], redeemed[0]!.length, true],
      [dates[1], redeemed[1]!.length, true],
    ],
  );
  for (const [index, { date }] of statements.entries()) {
    const detail = readCsv((await service.as("ak_a").get(`/v1/reconciliations/${date}/detail`)).text);
    t.strictSame(
      detail.map((line) => line["redemption_id"]),
      redeemed[index],
    );
  }
  const ready = await service.owner.rows(
    "select business_date::text as date from rules.event where event_type = 'reconciliation.ready' order by event_seq",
  );
  t.strictSame(
    ready.map((event) => event["date"]),
    dates.slice(0, 2),
    "announced in order",
  );
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test(
  "a day closes when all entries recorded in it are posted; younger entries do not delay it",
  beside,
  async (t) => {
    const service = await startService(t);
    const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 20);
    const books = await keepBusinessDays(t, service);
    let entries = 0;
    const { midnight } = await arrangeBefore(service, async (moment) => {
      const midnight = secondAfter(moment);
      await setZone(service, "pty_a", zoneOf(midnightOffset(midnight)));
      await books.sequence();
      await redeem(service, "ak_a", codes.pop()!, "mch_a");
      entries += 1;
      return { midnight };
    });
    await untilMoment(service, midnight + 2);
    await books.closer.closeDays();
    t.strictSame(await listStatements(service), [], "a call that read the clock before midnight may still be running");
    await untilMoment(service, midnight + 5.1);
    await books.closer.closeDays();
    t.strictSame(await listStatements(service), [], "its entry is not posted yet");
    // A close more than 5 s after the redeem would wait for its entry.
    await waitUntil("a close soon after a redeem", async () => {
      await books.sequence();
      await redeem(service, "ak_a", codes.pop()!, "mch_a");
      await books.closer.closeDays();
      return (await listStatements(service)).length > 0;
    });
    fits(t, await listStatements(service), [{ entries }], "the entry of the next day is not posted");
    await books.close();
    t.strictSame(await findBrokenInvariants(service.owner), []);
  },
);

t.test("a clock that is set back does not move the business day back", beside, async (t) => {
  const service = await startService(t);
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 2);
  const books = await keepBusinessDays(t, service);
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  await redeem(service, "ak_a", codes.pop()!, "mch_a");
  await books.sequence();
  await setZone(service, "pty_a", zoneOf(offset + daySeconds));
  await books.close();
  const closed = await listStatements(service);
  fits(t, closed, [{ date: dateOf(nowSeconds() + offset), entries: 1, is_ready: true }]);

  await setZone(service, "pty_a", zoneOf(offset));
  await redeem(service, "ak_a", codes.pop()!, "mch_a");
  await t.resolves(books.close(), "the sequencer goes on");
  const postings = await service.owner.rows(
    "select business_date::text as date from rules.posting order by business_date",
  );
  t.strictSame(
    postings.map(({ date }) => date),
    [closed[0]!.date, dateOf(nowSeconds() + offset + daySeconds)],
    "an entry recorded on a closed day is posted to the open day",
  );
  t.strictSame(await listStatements(service), closed);
  fits(
    t,
    await service.owner.rows("update core.ledger_book set open_on = open_on - 1").catch((error: unknown) => error),
    { constraint_name: "open_day_goes_forward" },
  );
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

// A day that is over, with an entry that the sequencer has passed and not posted; a session that closes the day, and
// one that posts the entry without the sequencer's advisory lock.
async function openRace(t: Test) {
  const service = await startService(t, undefined, { mayBreakInvariants: true });
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 1);
  const books = await keepBusinessDays(t, service);
  const offset = noonOffset();
  await setZone(service, "pty_a", zoneOf(offset));
  await books.sequence();
  await redeem(service, "ak_a", codes.pop()!, "mch_a");
  await setZone(service, "pty_a", zoneOf(offset + daySeconds));
  const [closer, poster] = [
    openSession(service.address, { name: "psql" }),
    openSession(service.address, { name: "psql" }),
  ];
  t.teardown(() => Promise.all([closer.end(), poster.end()]));
  const close = () => closer.rows<{ closed: number }>("select jobs.close_days(100) as closed");
  const post = () =>
    poster.rows(
      `insert into core.posting_page
       select l.tenant_id, l.distributor_id, $1, 1, array[e.event_seq]
       from core.ledger_entry l join rules.event e on e.event_id = l.entry_id`,
      [dateOf(nowSeconds() + offset)],
    );
  await service.owner.rows(
    `update core.sequencer
     set step = step + 1, after_seq = high_seq, late_seqs = '{}', high_seq = (select max(event_seq) from rules.event)`,
  );
  await closer.run("begin");
  await poster.run("begin");
  return { service, closer, poster, close, post };
}

t.test("a session that posts to a day while another closes it waits, and is refused", beside, async (t) => {
  const { service, closer, poster, close, post } = await openRace(t);
  fits(t, await close(), [{ closed: 1 }]);
  const refusal = post().catch((error: unknown) => error);
  await untilBlocked(service, 1);
  await closer.run("commit");
  fits(t, await refusal, { constraint_name: "closed_day_is_closed" });
  await poster.run("rollback");
  fits(t, await listStatements(service), [{ entries: 0 }]);
});

t.test("a session that closes a day while another posts to it waits, and counts its entry", beside, async (t) => {
  const { service, closer, poster, close, post } = await openRace(t);
  await post();
  const closed = close();
  await untilBlocked(service, 1);
  await poster.run("commit");
  fits(t, await closed, [{ closed: 1 }]);
  await closer.run("commit");
  fits(t, await listStatements(service), [{ entries: 1 }]);
});
