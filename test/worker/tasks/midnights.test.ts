// Redeems across the midnights of 20 distributors, with two workers (see test/support/business-days.ts).
//
// RATE=500 npm test -- --timeout=600 test/worker/tasks/midnights.test.ts   redeems at that rate per second, as far as
// the machine can.
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { verify } from "../../../src/commands/statements.ts";
import { readConfig } from "../../../src/common/config.ts";
import { createLog } from "../../../src/common/log.ts";
import { work } from "../../../src/work.ts";
import {
  daySeconds,
  listStatements,
  manyDistributors,
  midnightOffset,
  openBooks,
  setZone,
  zoneOf,
} from "../../support/business-days.ts";
import { sendPatiently } from "../../support/client.ts";
import { readCsv } from "../../support/csv.ts";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { dateOf, redeem, secondAfter, untilMoment } from "../../support/midnights.ts";
import { arrangeBefore } from "../../support/race.ts";
import { newRequestId, startService, type Running } from "../../support/service.ts";
import { beginRequest } from "../../support/sessions.ts";
import { waitUntil } from "../../support/wait-until.ts";

const rate = Number(process.env["RATE"] ?? 80);

type MidnightFixture = Awaited<ReturnType<typeof startMidnightFixture>>;
type Worker = Awaited<ReturnType<typeof work>>;
type Entry = { entry: string; distributor: string; cents: string; recorded: number };

async function startMidnightFixture(t: Test) {
  const { tenant, parties } = manyDistributors(20);
  const service = await startService(t, { tenants: [tenant] });
  const codes = await openBooks(service, parties, Math.ceil((rate * 15) / 20) + 3);
  const midnights = new Map<string, number>();
  // Two distributors share each midnight, one second after the previous pair's.
  const setMidnights = async (first: number) => {
    for (const [index, party] of parties.entries()) {
      const midnight = first + Math.floor(index / 2);
      midnights.set(party, midnight);
      await setZone(service, party, zoneOf(midnightOffset(midnight)));
    }
  };
  // The local dates before and after the midnight of a distributor.
  const dates = (party: string): [string, string] => {
    const midnight = midnights.get(party)!;
    return [dateOf(midnight + midnightOffset(midnight) - 1), dateOf(midnight + midnightOffset(midnight))];
  };
  const parts = { address: service.address, keys: service.keys, config: readConfig({}), log: createLog("silent") };
  const workers: Worker[] = [];
  // Only now, because a worker opens a book on the day that its distributor's zone has then.
  const startWorkers = async () => {
    for (let count = 0; count < 2; count += 1) workers.push(await work(parts));
  };
  const stopWorkers = () => Promise.all(workers.map((worker) => worker.stop()));
  t.teardown(stopWorkers);
  return { service, parties, codes, midnights, setMidnights, dates, startWorkers, stopWorkers };
}

// Redeems at the rate, and reverses each tenth redemption, until end() is called.
function startRedeeming({ service, parties, codes }: MidnightFixture) {
  let isOver = false;
  let made = 0;
  const startedAt = performance.now();
  const pool = parties.flatMap((party) => codes.get(party)!).sort(() => Math.random() - 0.5);
  const tills = Array.from({ length: Math.ceil(rate / 5) }, async (_, till) => {
    for (let coupon = pool.pop(); coupon !== undefined && !isOver; coupon = pool.pop()) {
      const redemption = await redeem(service, "ak_many", coupon, till % 2 === 0 ? "mch_many" : "mch_other");
      made += 1;
      const reversal = { request_id: newRequestId(), redemption };
      if (made % 10 === 0) await sendPatiently(() => service.as("ak_many").post("/v1/redemptions/reverse", reversal));
      await sleep(Math.max(0, (made / rate) * 1000 - (performance.now() - startedAt)));
    }
  });
  return {
    async end(): Promise<string> {
      const seconds = (performance.now() - startedAt) / 1000;
      isOver = true;
      await Promise.all(tills);
      return `${made} redeems in ${seconds.toFixed(1)} s: ${Math.round(made / seconds)}/s`;
    },
  };
}

async function listReady(service: Running) {
  return (await listStatements(service)).filter(({ is_ready }) => is_ready);
}

// Ends the second day as well, once all its entries are posted, so that every entry is in a statement.
async function closeSecondDays({ service, midnights, stopWorkers }: MidnightFixture): Promise<void> {
  await waitUntil("every entry to be posted", async () => {
    const unposted = await service.owner.rows(
      `select
       from core.ledger_entry l
       left join rules.posting p using (tenant_id, entry_id)
       where p.entry_id is null
       limit 1`,
    );
    return unposted.length === 0;
  });
  for (const [party, midnight] of midnights)
    await setZone(service, party, zoneOf(midnightOffset(midnight) + daySeconds));
  await waitUntil("40 ready statements", async () => (await listReady(service)).length === 40);
  await stopWorkers();
}

// A column of amounts, in cents.
const sumCents = (lines: Record<string, string>[], column: string) =>
  lines.reduce((sum, line) => sum + Math.round(Number(line[column]) * 100), 0);

async function listEntries(service: Running): Promise<Entry[]> {
  return service.owner.rows<Entry>(
    `select l.entry, l.distributor, (l.discount_amount * 100)::bigint::text as cents,
            extract(epoch from l.recorded_at)::float as recorded
     from report.ledger l`,
  );
}

// Downloads all statements and compares their sums with each other and with the ledger. Returns the date of each entry.
async function readStatements(t: Test, { service, parties, dates }: MidnightFixture, entries: Entry[]) {
  const found = new Map<string, string>();
  const read = async (party: string, date: string, kind: string) =>
    readCsv((await service.as("ak_many").get(`/v1/reconciliations/${date}/${kind}?distributor=${party}`)).text);
  for (const party of parties) {
    let total = 0;
    for (const date of dates(party)) {
      const [detail, summary] = [await read(party, date, "detail"), await read(party, date, "summary")];
      for (const line of detail) {
        if (found.has(line["entry_id"]!)) t.fail(`${line["entry_id"]} is in two statements`);
        found.set(line["entry_id"]!, date);
      }
      t.equal(
        sumCents(detail, "discount_amount"),
        sumCents(summary, "net_amount"),
        `${party} ${date}: detail = summary`,
      );
      total += sumCents(summary, "net_amount");
    }
    const moved = entries
      .filter(({ distributor }) => distributor === party)
      .reduce((sum, entry) => sum + Number(entry.cents), 0);
    t.equal(total, moved, `${party}: statements = ledger`);
  }
  return found;
}

t.test("across 20 midnights, every entry is in exactly one statement and closed statements never change", async (t) => {
  const fixture = await startMidnightFixture(t);
  const { service, parties, codes, midnights, dates } = fixture;
  // Two calls that run over the midnight of their distributor: one for as long as a call may take, one far longer.
  const [early, late] = parties as [string, string];
  const hold = (party: string) =>
    beginRequest(service, "ak_many", "redeem", {
      request_id: newRequestId(),
      coupon: codes.get(party)!.pop()!,
      merchant: "mch_many",
    });
  const { first, commitEarly, commitLate } = await arrangeBefore(
    service,
    async (moment) => {
      const first = secondAfter(moment);
      await fixture.setMidnights(first);
      return { first, commitEarly: await hold(early), commitLate: await hold(late) };
    },
    (held) => Promise.all([held.commitEarly("rollback"), held.commitLate("rollback")]),
  );
  const redeeming = startRedeeming(fixture);
  await fixture.startWorkers();
  await untilMoment(service, first + 2);
  await commitEarly("commit");
  // Its day closes 5 s after the midnight. A busy machine may have missed that.
  const [commit] = await service.owner.rows<{ is_early: boolean }>(
    "select clock_timestamp() < to_timestamp($1) as is_early",
    [first + 5],
  );
  await waitUntil("the statement of the late call's distributor", async () =>
    (await listReady(service)).some(({ distributor }) => distributor === late),
  );
  await commitLate("commit");
  await waitUntil("20 ready statements", async () => (await listReady(service)).length === 20);
  t.comment(await redeeming.end());
  const firstDays = await listReady(service);
  await closeSecondDays(fixture);

  const verdicts = await Array.fromAsync(verify(service.admin));
  t.strictSame(
    verdicts.flatMap(({ statement, differences }) => differences.map((difference) => `${statement}: ${difference}`)),
    [],
    "detail = summary = the stored checksums",
  );
  t.strictSame(
    (await listReady(service)).filter(({ distributor, date }) =>
      firstDays.some((day) => day.distributor === distributor && day.date === date),
    ),
    firstDays,
    "closed statements are unchanged",
  );
  const entries = await listEntries(service);
  const found = await readStatements(t, fixture, entries);
  t.equal(found.size, entries.length, "every entry is in a statement");
  const onOtherDay = entries.filter(({ entry, distributor, recorded }) => {
    const day = recorded < midnights.get(distributor)! ? 0 : 1;
    return found.get(entry) !== dates(distributor)[day];
  });
  t.strictSame(
    onOtherDay.map(({ distributor }) => distributor).filter((one) => one !== early || commit!.is_early),
    [late],
    "each on the day it was recorded, except the late one, whose day was already closed",
  );
  t.strictSame(await findBrokenInvariants(service.owner), []);
});
