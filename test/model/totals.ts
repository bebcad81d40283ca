// Compares the sum of all runs with the distributor's feed and with the statement of the day, which is closed at the
// end. The invariants are checked when the database is dropped (test/support/database.ts).
import { analyzeGrownTables } from "../support/analyze-grown-tables.ts";
import { readCsv } from "../support/csv.ts";
import { daySeconds, keepBusinessDays, noonOffset, setZone, zoneOf } from "../support/business-days.ts";
import { pullEvents } from "../support/pull-events.ts";
import type { Teardown } from "../support/service.ts";
import { waitAtMost } from "../support/wait-until.ts";
import type { Coupon } from "./coupon.ts";
import { kindOf } from "./kinds.ts";
import { differEvents } from "./rows.ts";
import type { Environment } from "./environment.ts";
import { toDecimal } from "./discount.ts";

export type Totals = ReturnType<typeof createTotals>;
type Sum = { redemptions: number; redeemed: number; reversals: number; reversed: number };

export function createTotals() {
  const coupons: Coupon[] = [];
  return { coupons, add: (more: Coupon[]) => void coupons.push(...more) };
}

// Returns the problems. Only valid when every run was completed.
export async function compareTotals(t: Teardown, environment: Environment, { coupons }: Totals): Promise<string[]> {
  const { service, setup } = environment;
  // As the worker does: otherwise the large views are planned for empty tables.
  await analyzeGrownTables(service.owner);
  const books = await keepBusinessDays(t, service);
  await books.sequence();
  // A day further east it is noon of the next day.
  await setZone(service, setup.distributor, zoneOf(noonOffset() + daySeconds));
  const closeDay = async () => (await isClosed(environment)) || void (await books.close());
  if ((await waitAtMost(60_000, closeDay)) === null) return ["the day did not close"];
  return [
    ...(await compareFeed(environment, coupons)),
    ...(await compareSums(environment, coupons)),
    ...books.errors.map((error) => JSON.stringify(error)),
  ];
}

const reader = ({ service, setup }: Environment) => service.as(setup.variant === "A" ? "ak_one" : "ak_dist");

async function isClosed(environment: Environment): Promise<boolean> {
  const { json } = await reader(environment).get("/v1/reconciliations");
  return json.reconciliations.some(
    ({ distributor_party_id: id }: any) => id === undefined || id === environment.setup.distributor,
  );
}

async function compareFeed(environment: Environment, coupons: Coupon[]): Promise<string[]> {
  const events = new Map<string, string[]>();
  const pulled = await pullEvents<{ coupon_id: string; event_type: string; redemption_id: string | null }>(
    reader(environment),
    1_000,
  );
  for (const { coupon_id, event_type, redemption_id } of pulled.events) {
    const line = [coupon_id, event_type, ...(redemption_id === null ? [] : [redemption_id])].join(" ");
    events.set(coupon_id, [...(events.get(coupon_id) ?? []), line]);
  }
  const known = new Set(coupons.map(({ id }) => id));
  const strange = [...events.keys()]
    .filter((id) => !known.has(id))
    .map((id) => `feed: an event of ${id}, which belongs to no run`);
  return [
    ...coupons.map((coupon) => differEvents(coupon, events.get(coupon.id) ?? [])).filter((problem) => problem !== null),
    ...strange,
  ].slice(0, 5);
}

// Compares the summary, which has one line per merchant and template.
async function compareSums(environment: Environment, coupons: Coupon[]): Promise<string[]> {
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
  const { json } = await reader(environment).get("/v1/reconciliations");
  const given: string[] = [];
  for (const { business_date, distributor_party_id: id } of json.reconciliations) {
    const { text } = await reader(environment).get(
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
  return left === right ? [] : [`statement: expected\n${left}\ngot\n${right}`];
}
