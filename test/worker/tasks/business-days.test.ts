// Business days with real midnights: distributors are given time zones whose midnights come now (see books.ts).
//
// RATE=500 npm test -- --timeout=600 test/worker/tasks/business-days.test.ts   redeems so many a second, as far as the machine goes.
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { readConfig } from "../../../src/common/config.ts";
import { createLog } from "../../../src/common/log.ts";
import { verify } from "../../../src/commands/statements.ts";
import { work } from "../../../src/work.ts";
import {
  daySeconds,
  keepBusinessDays,
  listStatements,
  manyDistributors,
  midnightOffset,
  noonOffset,
  openBooks,
  posixOffset,
  setZone,
  zoneOf,
} from "../../support/business-days.ts";
import { readCsv } from "../../support/csv.ts";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { untilPast } from "../../support/race.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { beginRequest } from "../../support/sessions.ts";
import { waitUntil } from "../../support/wait-until.ts";

// They wait for the clock most of the time.
t.jobs = 4;
const beside = { buffered: true };

const seconds = () => Math.ceil(Date.now() / 1000);
const dateOf = (moment: number) => new Date(moment * 1000).toISOString().slice(0, 10);
const past = (service: Running, moment: number) => untilPast(service, new Date(moment * 1000).toISOString());

async function redeem(service: Running, by: string, coupon: string, merchant: string): Promise<string> {
  const { json, text } = await service
    .as(by)
    .post("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant });
  if (json.redemption === undefined) throw new Error(text);
  return json.redemption;
}

async function verdicts(service: Running): Promise<string[]> {
  return (await Array.fromAsync(verify(service.admin))).flatMap(({ statement, differences }) =>
    differences.map((difference) => `${statement}: ${difference}`),
  );
}

// Amounts of a file's column, in cents.
const cents = (lines: Record<string, string>[], column: string) =>
  lines.reduce((sum, line) => sum + Math.round(Number(line[column]) * 100), 0);

t.test(
  "redeems across 20 midnights, two workers: every entry in one statement, and none in a closed one afterwards",
  beside,
  async (t) => {
    const rate = Number(process.env["RATE"] ?? 80);
    const many = manyDistributors(20);
    const service = await startService(t, { tenants: [many.tenant] });
    const codes = await openBooks(service, many.parties, Math.ceil((rate * 15) / 20) + 3);
    const first = seconds() + 4;
    const midnights = new Map(many.parties.map((party, index) => [party, first + Math.floor(index / 2)]));
    for (const [party, midnight] of midnights) await setZone(service, party, zoneOf(midnightOffset(midnight)));
    const dates = (party: string) => [
      dateOf(midnights.get(party)! + midnightOffset(midnights.get(party)!) - 1),
      dateOf(midnights.get(party)! + midnightOffset(midnights.get(party)!)),
    ];

    const parts = { address: service.address, keys: service.keys, config: readConfig({}), log: createLog("silent") };
    const workers = [await work(parts), await work(parts)];
    t.teardown(() => Promise.all(workers.map((worker) => worker.stop())));

    // Two calls that are under way over the midnight of their distributor: one within the time a call may take, one far beyond.
    const [early, late] = many.parties.slice(0, 2) as [string, string];
    const hold = (party: string) =>
      beginRequest(service, "ak_many", "redeem", {
        request_id: newRequestId(),
        coupon: codes.get(party)!.pop()!,
        merchant: "mch_many",
      });
    await past(service, first - 1);
    const [commitEarly, commitLate] = [await hold(early), await hold(late)];

    let isOver = false;
    const startedAt = performance.now();
    const pool = many.parties.flatMap((party) => codes.get(party)!).sort(() => Math.random() - 0.5);
    const lanes = Math.ceil(rate / 5);
    let made = 0;
    const redeeming = Promise.all(
      Array.from({ length: lanes }, async (_, lane) => {
        for (let coupon = pool.pop(); coupon !== undefined && !isOver; coupon = pool.pop()) {
          const redemption = await redeem(service, "ak_many", coupon, lane % 2 === 0 ? "mch_many" : "mch_other");
          made += 1;
          if (made % 10 === 0)
            await service.as("ak_many").post("/v1/redemptions/reverse", { request_id: newRequestId(), redemption });
          await sleep(Math.max(0, (made / rate) * 1000 - (performance.now() - startedAt)));
        }
      }),
    );
    await past(service, first + 2);
    await commitEarly("commit");
    const listed = async () => (await listStatements(service)).filter(({ is_ready }) => is_ready);
    await waitUntil("the last midnight", async () => (await listed()).some(({ distributor }) => distributor === late));
    await commitLate("commit");
    await waitUntil("20 ready statements", async () => (await listed()).length === 20);
    const redeemedFor = (performance.now() - startedAt) / 1000;
    isOver = true;
    await redeeming;
    const firstDays = await listed();

    // What came after midnight is closed too, when it has its place, so that all of it can be counted.
    await waitUntil(
      "every entry to be posted",
      async () =>
        (
          await service.owner.rows(
            `select
             from core.ledger_entry l
             left join core.posting p using (tenant_id, entry_id)
             where p.entry_id is null
             limit 1`,
          )
        ).length === 0,
    );
    for (const [party, midnight] of midnights)
      await setZone(service, party, zoneOf(midnightOffset(midnight) + daySeconds));
    await waitUntil("40 ready statements", async () => (await listed()).length === 40);
    await Promise.all(workers.map((worker) => worker.stop()));
    t.comment(`${made} redeems in ${redeemedFor.toFixed(1)} s: ${Math.round(made / redeemedFor)}/s`);

    t.strictSame(await verdicts(service), [], "detail = summary = what was closed");
    t.strictSame(
      (await listed()).filter(({ distributor, date }) =>
        firstDays.some((day) => day.distributor === distributor && day.date === date),
      ),
      firstDays,
      "a closed one is as it was",
    );
    const entries = await service.owner.rows<{ entry: string; distributor: string; cents: string; recorded: number }>(
      `select l.entry, l.distributor, (l.discount_amount * 100)::bigint::text as cents,
              extract(epoch from l.recorded_at)::float as recorded
       from report.ledger l`,
    );
    const expected = new Map(
      entries.map(({ entry, distributor, recorded }) => [
        entry,
        dates(distributor)[recorded < midnights.get(distributor)! ? 0 : 1]!,
      ]),
    );
    const found = new Map<string, string>();
    for (const party of many.parties) {
      let total = 0;
      for (const date of dates(party)) {
        const read = async (kind: string) =>
          readCsv((await service.as("ak_many").get(`/v1/reconciliations/${date}/${kind}?distributor=${party}`)).text);
        const [detail, summary] = [await read("detail"), await read("summary")];
        for (const line of detail) {
          if (found.has(line["entry_id"]!)) t.fail(`${line["entry_id"]} is in two statements`);
          found.set(line["entry_id"]!, date);
        }
        t.equal(cents(detail, "discount_amount"), cents(summary, "net_amount"), `${party} ${date}: detail = summary`);
        total += cents(summary, "net_amount");
      }
      const moved = entries
        .filter(({ distributor }) => distributor === party)
        .reduce((sum, entry) => sum + Number(entry.cents), 0);
      t.equal(total, moved, `${party}: statements = ledger`);
    }
    t.equal(found.size, entries.length, "every entry");
    const elsewhere = [...expected]
      .filter(([entry, date]) => found.get(entry) !== date)
      .map(([entry]) => entries.find((row) => row.entry === entry)!.distributor);
    t.strictSame(
      elsewhere,
      [late],
      "on the day on which it was recorded, but for the one that was held until that was closed",
    );
    t.strictSame(await findBrokenInvariants(service.owner), []);
  },
);

t.test("the worker is down over two midnights: both days close, in order, each with its own", beside, async (t) => {
  const service = await startService(t);
  const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 6, { isReleased: false });
  // A midnight, and 4 s later the clocks go forward to 2 s before the next one.
  const midnight = seconds() + 4;
  const offset = midnightOffset(midnight);
  const day = new Date((midnight + offset) * 1000);
  const dayOfYear = Math.round((day.getTime() - Date.UTC(day.getUTCFullYear(), 0, 1)) / (daySeconds * 1000));
  await setZone(
    service,
    "pty_a",
    `<S>${posixOffset(offset)}<D>${posixOffset(offset + daySeconds - 6)},${dayOfYear}/0:0:4,${(dayOfYear + 180) % 365}/0`,
  );
  const [row] = await service.owner.rows<{ batch: string }>("select external_id as batch from core.batch");
  await service.as("ak_a").post("/v1/batches/allocate", { request_id: newRequestId(), batch: row!.batch });

  const redeemed: string[][] = [[], [], []];
  const redeemSome = async (into: string[], count: number) => {
    for (let index = 0; index < count; index += 1) into.push(await redeem(service, "ak_a", codes.pop()!, "mch_a"));
  };
  await redeemSome(redeemed[0]!, 2);
  await past(service, midnight);
  await redeemSome(redeemed[1]!, 1);
  await past(service, midnight + 4);
  await redeemSome(redeemed[1]!, 2);
  await past(service, midnight + 6);
  await redeemSome(redeemed[2]!, 1);
  await past(service, midnight + 6 + 5);

  const books = await keepBusinessDays(t, service);
  await books.close();
  const dates = [-1, 0, 1].map((days) => dateOf(midnight + offset + days * daySeconds));
  const statements = await listStatements(service);
  t.strictSame(
    statements.map(({ date, entries, is_ready }) => [date, entries, is_ready]),
    [
      [dates[0], 2, true],
      [dates[1], 3, true],
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
    "select business_date::text as date from core.event where event_type = 'reconciliation.ready' order by event_seq",
  );
  t.strictSame(
    ready.map((event) => event["date"]),
    dates.slice(0, 2),
    "and are told of in order",
  );
  t.strictSame(await findBrokenInvariants(service.owner), []);
});

t.test(
  "a day does not close before what was recorded in it has its place; what is younger does not hold it up",
  beside,
  async (t) => {
    const service = await startService(t);
    const { codes } = await service.makeBatch(service.as("ak_a"), "tpl_fixed", 3);
    const books = await keepBusinessDays(t, service);
    const midnight = seconds() + 2;
    await setZone(service, "pty_a", zoneOf(midnightOffset(midnight)));
    await books.sequence();
    await redeem(service, "ak_a", codes.pop()!, "mch_a");
    await past(service, midnight + 2);
    await books.closer.closeDays();
    t.strictSame(await listStatements(service), [], "a call that was recorded before midnight may still be under way");
    await past(service, midnight + 5.1);
    await books.closer.closeDays();
    t.strictSame(await listStatements(service), [], "it has no place yet");
    await books.sequence();
    await redeem(service, "ak_a", codes.pop()!, "mch_a");
    await books.closer.closeDays();
    t.match(await listStatements(service), [{ entries: 1 }], "although the next one has none");
    await books.close();
    t.strictSame(await findBrokenInvariants(service.owner), []);
  },
);

t.test("the clock is set back: the business day does not go back", beside, async (t) => {
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
  t.match(closed, [{ date: dateOf(seconds() + offset), entries: 1, is_ready: true }]);

  await setZone(service, "pty_a", zoneOf(offset));
  await redeem(service, "ak_a", codes.pop()!, "mch_a");
  await t.resolves(books.close(), "the sequencer is not stopped by it");
  const postings = await service.owner.rows(
    "select business_date::text as date from core.posting order by business_date",
  );
  t.strictSame(
    postings.map(({ date }) => date),
    [closed[0]!.date, dateOf(seconds() + offset + daySeconds)],
    "what is recorded on a closed day belongs to the open one",
  );
  t.strictSame(await listStatements(service), closed);
  t.match(
    await service.owner.rows("update core.ledger_book set open_on = open_on - 1").catch((error: unknown) => error),
    { constraint_name: "open_day_goes_forward" },
  );
  t.strictSame(await findBrokenInvariants(service.owner), []);
});
