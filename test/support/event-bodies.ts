// The bodies of events, built from report.event. So the service's own formatting is compared with another one.
import type { Database } from "../../src/database/types.ts";

type Row = Record<"event" | "event_type" | "party" | "occurred_at" | "recorded_at", string> &
  Record<"coupon" | "redemption" | "batch" | "business_date", string | null>;

/** In the order of their numbers. `where` is a condition on report.event e. */
export async function readEventBodies(
  database: Pick<Database, "rows">,
  where: string,
  params: unknown[] = [],
): Promise<string[]> {
  const rows = await database.rows<Row>(
    `select e.event, e.event_type, e.party, e.coupon, e.redemption, e.batch, e.business_date::text,
            rules.format_time(e.occurred_at) as occurred_at, rules.format_time(e.recorded_at) as recorded_at
     from report.event e
     where ${where}
     order by e.event_seq`,
    params,
  );
  return rows.map((row) => JSON.stringify(toBody(row)));
}

function toBody(row: Row): Record<string, unknown> {
  const { event, event_type, party, occurred_at, recorded_at, coupon, redemption, batch, business_date } = row;
  const head = { event_id: event, event_type };
  if (coupon !== null) return { ...head, coupon_id: coupon, redemption_id: redemption, occurred_at, recorded_at };
  if (batch !== null) return { ...head, batch_id: batch, occurred_at };
  return { ...head, business_date, distributor_party_id: party, occurred_at };
}
