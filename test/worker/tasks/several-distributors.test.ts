// Variant A with several distributors: each address of a download means one file, before and after every midnight.
import t, { type Test } from "tap";
import {
  daySeconds,
  keepBusinessDays,
  manyDistributors,
  midnightOffset,
  noonOffset,
  openBooks,
  setZone,
  zoneOf,
} from "../../support/business-days.ts";
import type { Client } from "../../support/client.ts";
import { readCsv } from "../../support/csv.ts";
import { readEventBodies } from "../../support/event-bodies.ts";
import { fits } from "../../support/fits.ts";
import { findBrokenInvariants } from "../../support/inspect.ts";
import { dateOf, nowSeconds, redeem, secondAfter, untilMoment } from "../../support/midnights.ts";
import { arrangeBefore } from "../../support/race.ts";
import { startService } from "../../support/service.ts";

// These tests mostly wait for the clock.
t.jobs = 2;
const beside = { buffered: true };

const ambiguous = { status: 422, json: { code: "AMBIGUOUS_DISTRIBUTOR", details: null } };
const notFound = { status: 404, json: { code: "NOT_FOUND", details: { resource: "reconciliation" } } };
const kinds = ["detail", "summary"] as const;

const addressOf = (date: string, kind: string, distributor?: string) =>
  `/v1/reconciliations/${date}/${kind}${distributor === undefined ? "" : `?distributor=${distributor}`}`;

async function checkAmbiguous(t: Test, by: Client, dates: string[], when: string): Promise<void> {
  for (const date of dates)
    for (const kind of kinds) fits(t, await by.get(addressOf(date, kind)), ambiguous, `${when}: ${date} ${kind}`);
}

// Both files name the distributor, in the name and in the last column, and have its redemptions only.
async function checkFiles(t: Test, by: Client, date: string, distributor: string, redemptions: string[]) {
  const texts: string[] = [];
  for (const kind of kinds) {
    const file = await by.get(addressOf(date, kind, distributor));
    t.equal(file.status, 200, file.text);
    t.equal(file.headers["content-disposition"], `attachment; filename="${kind}-${date}-${distributor}.csv"`);
    t.match(file.text.split("\r\n")[0], /,distributor_id$/);
    const lines = readCsv(file.text);
    t.ok(lines.every((line) => line["distributor_id"] === distributor && line["business_date"] === date));
    if (kind === "detail")
      t.strictSame(
        lines.map((line) => line["redemption_id"]),
        redemptions,
        `${distributor} ${date}`,
      );
    else t.strictSame([lines.length, lines[0]!["redemption_count"]], [1, String(redemptions.length)]);
    texts.push(file.text);
  }
  return texts;
}

t.test(
  "across two midnights, no address without a name works, and every file names its distributor",
  beside,
  async (t) => {
    const { tenant, parties } = manyDistributors(2);
    const [east, west] = parties as [string, string];
    const service = await startService(t, { tenants: [tenant] });
    const by = service.as("ak_many");
    const codes = await openBooks(service, parties, 5);
    const books = await keepBusinessDays(t, service);
    const redeemed: Record<string, string[]> = { [east]: [], [west]: [] };
    const redeemBoth = async () => {
      for (const party of parties)
        redeemed[party]!.push(await redeem(service, "ak_many", codes.get(party)!.pop()!, "mch_many"));
    };
    const { midnights } = await arrangeBefore(service, async (moment) => {
      // West's midnight is 9 s after east's, so in between only east has closed the day.
      const midnights = { [east]: secondAfter(moment), [west]: secondAfter(moment) + 9 };
      const offset = midnightOffset(midnights[east]!);
      await setZone(service, east, zoneOf(offset));
      await setZone(service, west, zoneOf(offset - 9));
      await books.sequence();
      await redeemBoth();
      return { midnights };
    });
    const early = redeemed[east]!.length;
    const [day, next] = [-1, 0].map((days) =>
      dateOf(midnights[east]! + midnightOffset(midnights[east]!) + days * daySeconds),
    ) as [string, string];

    await checkAmbiguous(t, by, [day, next], "before both midnights");
    await untilMoment(service, midnights[east]!);
    await redeemBoth();
    await untilMoment(service, midnights[east]! + 6);
    await books.close();
    await checkAmbiguous(t, by, [day, next], "after east's midnight");
    const morning = await checkFiles(t, by, day, east, redeemed[east]!.slice(0, early));
    fits(t, await by.get(addressOf(day, "detail", west)), notFound);
    t.strictSame((await by.get("/v1/reconciliations")).json, {
      reconciliations: [],
      next_cursor: "1970-01-01",
    });

    await untilMoment(service, midnights[west]!);
    await redeemBoth();
    await untilMoment(service, midnights[west]! + 6);
    await books.close();
    await checkAmbiguous(t, by, [day, next], "after both midnights");
    t.strictSame(await checkFiles(t, by, day, east, redeemed[east]!.slice(0, early)), morning, "the same bytes");
    await checkFiles(t, by, day, west, redeemed[west]!.slice(0, early + 1));
    const { reconciliations } = (await by.get("/v1/reconciliations")).json;
    t.strictSame(
      reconciliations.map((entry: any) => [
        entry.business_date,
        entry.distributor_party_id,
        entry.files.map(({ href }: any) => href),
      ]),
      parties.map((party) => [day, party, kinds.map((kind) => addressOf(day, kind, party))]),
    );
    const events = await readEventBodies(service.owner, "e.event_type = 'reconciliation.ready'");
    fits(
      t,
      events.map((body) => JSON.parse(body)),
      parties.map((party) => ({ business_date: day, distributor_party_id: party })),
    );
    t.strictSame(await findBrokenInvariants(service.owner), []);
  },
);

t.test(
  "when a second distributor joins, closed days keep their address and later days need a name",
  beside,
  async (t) => {
    const { tenant, parties } = manyDistributors(2);
    const [first, second] = parties as [string, string];
    const service = await startService(t, { tenants: [tenant] });
    const by = service.as("ak_many");
    const offset = noonOffset();
    const [day, next] = [0, 1].map((days) => dateOf(nowSeconds() + offset + days * daySeconds)) as [string, string];
    for (const party of parties) await setZone(service, party, zoneOf(offset));
    const codes = await openBooks(service, [first], 2);
    const books = await keepBusinessDays(t, service);
    const redemption = await redeem(service, "ak_many", codes.get(first)!.pop()!, "mch_many");
    await books.sequence();
    fits(t, await by.get(addressOf(day, "detail")), notFound, "a tenant with one distributor needs no name");
    await setZone(service, first, zoneOf(offset + daySeconds));
    await books.close();
    const closed = await checkFiles(t, by, day, first, [redemption]);
    const [entry] = (await by.get("/v1/reconciliations")).json.reconciliations;
    t.strictSame(
      entry.files.map(({ href }: any) => href),
      kinds.map((kind) => addressOf(day, kind)),
    );

    // The local date of the second distributor is the closed day.
    await openBooks(service, [second], 2);
    await books.close();
    for (const days of [2, 3]) {
      for (const [index, kind] of kinds.entries())
        t.equal((await by.get(addressOf(day, kind))).text, closed[index], `${kind}: the closed day keeps its address`);
      fits(t, await by.get(addressOf(day, "detail", second)), notFound, "the closed day stays the first one's alone");
      await checkAmbiguous(t, by, [next], `day ${days}`);
      for (const party of parties) await setZone(service, party, zoneOf(offset + days * daySeconds));
      await books.close();
    }
    t.strictSame(
      (await by.get("/v1/reconciliations?limit=2")).json.reconciliations.map((listed: any) => [
        listed.business_date,
        listed.distributor_party_id,
        listed.files[0].href,
      ]),
      [
        [day, first, addressOf(day, "detail")],
        ...parties.map((party) => [next, party, addressOf(next, "detail", party)]),
      ],
    );
    t.strictSame(await findBrokenInvariants(service.owner), []);
  },
);
