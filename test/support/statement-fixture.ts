// Distributors whose business day ends when a test says so.
import type { Test } from "tap";
import { keepBusinessDays, manyDistributors, moveToNoon, openBooks, type Books } from "./business-days.ts";
import { scenario, type Options, type Scenario } from "./scenario.ts";

export type StatementFixture = {
  service: Scenario;
  books: Books;
  parties: string[];
  /** Ends the business day of a distributor. */
  end(party: string): Promise<void>;
};

/** Distributors with three ledger entries each, on a business day that lasts until `end` is called. */
export async function startStatementFixture(t: Test, count: number, options: Options = {}): Promise<StatementFixture> {
  const { tenant, parties } = manyDistributors(count);
  const service = await scenario(t, { file: { tenants: [tenant] }, ...options });
  for (const party of parties) await moveToNoon(service, party);
  const coupons = await openBooks(service, parties, 2);
  const { ok } = service.as("ak_many", "mch_many");
  await Promise.all(
    parties.map(async (party) => {
      const [first, last] = coupons.get(party)!;
      for (const coupon of [first!, last!]) await ok.redeem(coupon, { store: `shop of ${party}` });
      await ok.reverse(last!);
    }),
  );
  const books = await keepBusinessDays(t, service);
  await books.sequence();
  return { service, books, parties, end: (party) => moveToNoon(service, party, 1) };
}
