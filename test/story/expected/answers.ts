// What the interface answers after the story: queries, batches, feeds and the list of statements, each field by value.
// Answers show times in milliseconds, so they may be that much older than the window of their step.
import type { Batch, Coupon, Statement, Tenant, Window } from "../books.ts";
import { amount, moment, sameKey } from "../books.ts";
import type { Story } from "../story.ts";

type Value = string | number | boolean | null | Window | Value[] | { [name: string]: Value };

const validFrom = moment("2020-01-01T00:00:00Z");

export function expectQuery({ books }: Story, coupon: Coupon): Value {
  const { batch, id, status } = coupon;
  const common = { coupon_id: id, status, batch_id: batch.id, created_at: batch.mintedAt! };
  if (batch.tenant.variant === "B") return { ...common, template_id: batch.template };
  const shown = books.redemptions.findLast(
    (one) => one.coupon === coupon && ["LOCKED", "REDEEMED", "REVERSED"].includes(one.status),
  );
  return {
    ...common,
    valid_from: validFrom,
    valid_to: coupon.validTo,
    ...(shown !== undefined && {
      redemption: {
        merchant_id: shown.merchant,
        status: shown.status,
        started_at: shown.startedAt,
        discount_amount: Number(amount(batch.tenant, shown.discountMinor, batch.currency)),
        currency: batch.currency,
      },
    }),
  };
}

export const expectBatch = (batch: Batch): Value => ({
  external_id: batch.id,
  status: batch.status,
  total_count: batch.total,
  minted_count: batch.minted,
  maker_party_id: "pty_one",
  distributor_party_id: batch.distributor,
  template_id: batch.template,
  created_at: batch.createdAt,
});

/** An entry of the list of reconciliations. In Variant A, where several distributors share a date, links name one. */
export function expectStatement({
  tenant,
  distributor,
  date,
  closedAt,
  entries,
  files,
  ...statement
}: Statement): Value {
  const isNamed = tenant.variant === "A" && statement.isOneOfSeveral;
  const describe = (kind: "detail" | "summary", rows: number) => ({
    kind,
    href: `/v1/reconciliations/${date}/${kind}${isNamed ? `?distributor=${distributor}` : ""}`,
    rows,
    bytes: files![kind].bytes,
    sha256: files![kind].sha256,
  });
  const lines = new Set(entries.map(({ redemption: { merchant, coupon } }) => `${merchant} ${coupon.batch.template}`));
  return {
    business_date: date,
    distributor_party_id: distributor,
    closed_at: closedAt,
    files: [describe("detail", entries.length), describe("summary", lines.size)],
  };
}

/** The feed of a tenant (Variant A) or of a party. The last two events of the story are not sequenced. */
export function expectFeed({ books, eventIds }: Story, tenant: Tenant, party: string | null): Value[] {
  return books.events
    .slice(0, -2)
    .filter((event) => event.tenant === tenant && event.coupon !== null && (party === null || event.party === party))
    .map((event) => ({
      event_id: event.entry === null ? eventIds[event.seq - 1]! : sameKey("evt", event.entry.id),
      event_type: event.type,
      coupon_id: event.coupon!.id,
      redemption_id: event.entry?.redemption.id ?? null,
      occurred_at: event.occurredAt,
      recorded_at: event.recordedAt,
    }));
}

/** `seen` with each time that is in its window shown as the window. */
export function readTimes(seen: unknown, wanted: unknown): unknown {
  if (typeof seen === "string" && typeof wanted === "object" && wanted !== null && "from" in wanted) {
    const { from, to } = wanted as Window;
    const seconds = Date.parse(seen) / 1_000;
    return seconds > from - 0.001 && seconds <= to + 0.000_001 ? wanted : seen;
  }
  if (typeof seen !== "object" || seen === null) return seen;
  const inside = (key: string) => (wanted as Record<string, unknown> | null | undefined)?.[key];
  const entries = Object.entries(seen).map(([key, value]) => [key, readTimes(value, inside(key))] as const);
  return Array.isArray(seen) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
}
