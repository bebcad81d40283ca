// Distributors whose business day ends when a test says so, and the check of all their statements.
import type { Test } from "tap";
import { verify } from "../../src/commands/statements.ts";
import {
  daySeconds,
  keepBusinessDays,
  listStatements,
  manyDistributors,
  noonOffset,
  openBooks,
  setZone,
  zoneOf,
  type Books,
} from "./business-days.ts";
import { findBrokenInvariants } from "./inspect.ts";
import { newRequestId, startService, type Running } from "./service.ts";

export type StatementFixture = { service: Running; books: Books; parties: string[]; end(party: string): Promise<void> };

/** Distributors with three ledger entries each, on a business day that lasts until `end` is called. */
export async function startStatementFixture(t: Test, count: number, options = {}): Promise<StatementFixture> {
  const { tenant, parties } = manyDistributors(count);
  const service = await startService(t, { tenants: [tenant] }, options);
  const offset = noonOffset();
  for (const party of parties) await setZone(service, party, zoneOf(offset));
  const codes = await openBooks(service, parties, 2);
  const by = service.as("ak_many");
  await Promise.all(
    parties.map(async (party) => {
      let redemption = "";
      for (const coupon of codes.get(party)!) {
        const { json } = await by.post("/v1/coupons/redeem", {
          request_id: newRequestId(),
          coupon,
          merchant: "mch_many",
          store: `shop of ${party}`,
        });
        redemption = json.redemption;
      }
      await by.post("/v1/redemptions/reverse", { request_id: newRequestId(), redemption });
    }),
  );
  const books = await keepBusinessDays(t, service);
  await books.sequence();
  return { service, books, parties, end: (party) => setZone(service, party, zoneOf(offset + daySeconds)) };
}

/** Each distributor has one finished statement, announced once, whose files can be rebuilt byte for byte. */
export async function checkStatements(t: Test, { service, parties }: StatementFixture): Promise<void> {
  const statements = await listStatements(service);
  t.strictSame(statements.map(({ distributor }) => distributor).sort(), [...parties].sort(), "one statement each");
  t.ok(statements.every(({ is_ready, entries }) => is_ready && entries === 3));
  const announced = await service.owner.rows(
    `select p.external_id as party, count(*)::int
     from rules.event e
     join core.party p using (tenant_id, party_id)
     where event_type = 'reconciliation.ready'
     group by 1`,
  );
  t.strictSame(
    announced.map(({ party, count }) => [party, count]).sort(),
    parties.map((party) => [party, 1]).sort(),
    "one reconciliation.ready each",
  );
  const verdicts = await Array.fromAsync(verify(service.admin));
  t.strictSame(
    verdicts.flatMap(({ differences }) => differences),
    [],
    "rebuilt files have the same bytes",
  );
  t.equal(verdicts.length, parties.length);
  t.strictSame(await findBrokenInvariants(service.owner), []);
}
