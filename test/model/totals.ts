// What all runs together must have come to: the distributor's feed, and the statement of the day, closed in the end. The
// laws are looked at when the database is dropped (test/support/database.ts).
import { readCsv } from "../support/csv.ts";
import { daySeconds, keepBusinessDays, noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import type { Teardown } from "../support/service.ts";
import type { Coupon } from "./coupon.ts";
import { kindOf } from "./kinds.ts";
import { differEvents } from "./rows.ts";
import type { World } from "./world.ts";
import { toDecimal } from "./worth.ts";

export type Totals = ReturnType<typeof createTotals>;
type Sum = { redemptions: number; redeemed: number; reversals: number; reversed: number };

export function createTotals() {
  const coupons: Coupon[] = [];
  return { coupons, add: (more: Coupon[]) => void coupons.push(...more) };
}

// The problems: none. Only where every run has come to its end.
export async function compareTotals(t: Teardown, world: World, { coupons }: Totals): Promise<string[]> {
  const { service, cast } = world;
  // As the worker does; else the views over everything are planned for empty tables.
  await service.owner.rows("select jobs.analyze_grown_tables()");
  const books = await keepBusinessDays(t, service);
  await books.sequence();
  // A day further east it is noon too, of the next day.
  await setZone(service, cast.distributor, zoneOf(noonOffset() + daySeconds));
  for (const deadline = performance.now() + 15_000; !(await isClosed(world));) {
    if (performance.now() > deadline) return ["the day did not close"];
    await books.close();
  }
  return [
    ...(await compareFeed(world, coupons)),
    ...(await compareSums(world, coupons)),
    ...books.errors.map((error) => JSON.stringify(error)),
  ];
}

const reader = ({ service, cast }: World) => service.as(cast.variant === "A" ? "ak_one" : "ak_dist");

async function isClosed(world: World): Promise<boolean> {
  const { json } = await reader(world).get("/v1/reconciliations");
  return json.reconciliations.some(
    ({ distributor_party_id: id }: any) => id === undefined || id === world.cast.distributor,
  );
}

async function compareFeed(world: World, coupons: Coupon[]): Promise<string[]> {
  const events = new Map<string, string[]>();
  for (let cursor = ""; ;) {
    const { json } = await reader(world).get(`/v1/events?limit=1000${cursor === "" ? "" : `&cursor=${cursor}`}`);
    if (json.events.length === 0) break;
    for (const { coupon_id, event_type, redemption_id } of json.events) {
      const line = [coupon_id, event_type, ...(redemption_id === null ? [] : [redemption_id])].join(" ");
      events.set(coupon_id, [...(events.get(coupon_id) ?? []), line]);
    }
    cursor = json.next_cursor;
  }
  const known = new Set(coupons.map(({ id }) => id));
  const strange = [...events.keys()]
    .filter((id) => !known.has(id))
    .map((id) => `feed: an event of ${id}, which no run had`);
  return [
    ...coupons.map((coupon) => differEvents(coupon, events.get(coupon.id) ?? [])).filter((problem) => problem !== null),
    ...strange,
  ].slice(0, 5);
}

// The summary, each line a merchant and a template.
async function compareSums(world: World, coupons: Coupon[]): Promise<string[]> {
  const sums = new Map<string, Sum>();
  for (const { kind, redemptions } of coupons) {
    for (const { merchant, status, minor } of redemptions) {
      if (status !== "REDEEMED" && status !== "REVERSED") continue;
      const name = `${merchant} tpl_${kind}`;
      const sum = sums.get(name) ?? { redemptions: 0, redeemed: 0, reversals: 0, reversed: 0 };
      sums.set(name, sum);
      sum.redemptions += 1;
      sum.redeemed += minor;
      if (status === "REDEEMED") continue;
      sum.reversals += 1;
      sum.reversed -= minor;
    }
  }
  const expected = [...sums].map(([name, { redemptions, redeemed, reversals, reversed }]) => {
    const { currency } = kindOf(name.split("tpl_")[1] as Coupon["kind"]);
    return [
      name,
      currency,
      redemptions,
      toDecimal(redeemed, currency),
      reversals,
      toDecimal(reversed, currency),
      toDecimal(redeemed + reversed, currency),
    ].join(" ");
  });
  const { json } = await reader(world).get("/v1/reconciliations");
  const given: string[] = [];
  for (const { business_date, distributor_party_id: id } of json.reconciliations) {
    const { text } = await reader(world).get(
      `/v1/reconciliations/${business_date}/summary${id === undefined ? "" : `?distributor=${id}`}`,
    );
    given.push(
      ...readCsv(text).map((line) =>
        [
          line["merchant_id"],
          line["template_id"],
          line["currency"],
          line["redemption_count"],
          line["redemption_amount"],
          line["reversal_count"],
          line["reversal_amount"],
          line["net_amount"],
        ].join(" "),
      ),
    );
  }
  const [left, right] = [expected.toSorted().join("\n"), given.toSorted().join("\n")];
  return left === right ? [] : [`statement: expected\n${left}\ngiven\n${right}`];
}
