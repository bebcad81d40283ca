import type { Page } from "../page.ts";
import { perDay } from "./per-day.ts";
import { sums } from "./sums.ts";

// Lines by batch are far fewer than those by merchant and template.
const rank = (column: "merchant" | "template", view: string): string => `
select tenant, ${column}, currency, ${sums}
from ${view}
where business_date >= current_date - 6
group by tenant, ${column}, currency
order by redemptions desc, tenant, ${column}, currency
limit 10`;

export const overview: Page = {
  path: "/",
  title: "Overview",
  isInMenu: true,
  refreshSeconds: 5,
  blocks: [
    {
      title: "What is wrong now",
      as: "table",
      none: "All is well, as far as the checks below go.",
      sql: `
select 'webhook is ' || health as what, tenant, party as subscriber, null as invariant, waiting + parked as count,
       null as detail
from report.measure_webhooks(20)
where health <> 'healthy'
union all
select 'invariant is broken', null, null, invariant, broken_rows, example
from report.list_invariants()
where broken_rows > 0
union all
select 'business day is overdue', tenant, null, null, 1, concat_ws(' ', distributor, open_on)
from report.list_open_days()
where is_overdue
union all
(select work || ' is stuck', tenant, null, null, waiting_events, concat_ws(' ', subject, reason)
 from report.stuck_work
 limit 20)`,
    },
    {
      title: "Waiting work and invariants",
      as: "facts",
      sql: `
select waiting_events, oldest_event_seconds, waiting_deliveries,
       oldest_delivery_seconds as deliveries_late_by_seconds, pending_batches, coupons_to_mint, coupons_to_recall,
       overdue_days, waiting_statements, broken_invariants, unchecked_invariants, oldest_check_at
from report.measure_work()`,
    },
    {
      title: "Webhooks",
      as: "table",
      note:
        "The 20 subscribers with the most parked and waiting deliveries, and the newest 200 attempts of each. " +
        "How long calls take is in the metrics of serve.",
      sql: `
select tenant, party as subscriber, health, waiting, parked, attempts, failures, p50_ms, p99_ms
from report.measure_webhooks(20)`,
    },
    {
      title: "Redemptions and reversals per minute",
      as: "chart",
      sql: "select minute, redemptions, reversals from report.count_minutes(120)",
    },
    {
      title: "Redemptions and reversals per business day",
      as: "chart",
      sql: perDay("report.daily_distributor", "business_date >= current_date - 29", { isAlways: true }),
    },
    {
      title: "Discounts of the last 30 business days",
      as: "table",
      sql: `
select tenant, currency, sum(redemption_count) as redemptions, sum(redemption_amount) as redeemed,
       sum(reversal_amount) as reversed, sum(net_amount) as net
from report.daily_distributor
where business_date >= current_date - 29
group by tenant, currency
order by tenant, currency`,
    },
    {
      title: "Merchants with the most redemptions of the last 7 business days",
      as: "table",
      sql: rank("merchant", "report.daily_store"),
    },
    {
      title: "Templates with the most redemptions of the last 7 business days",
      as: "table",
      sql: rank("template", "report.daily_batch"),
    },
    {
      title: "Refusals of the last 15 minutes",
      as: "table",
      none: "None. Requests has the older ones.",
      sql: `
select tenant, merchant, operation, code, count(*) as refusals, max(recorded_at) as newest
from report.request
where recorded_at > now() - interval '15 minutes' and http_status <> 200
group by tenant, merchant, operation, code
order by refusals desc, tenant, merchant, operation, code
limit 20`,
    },
    {
      title: "Batches being minted",
      as: "table",
      sql: `
select created_at, tenant, batch, maker, minted_count, total_count,
       round(100.0 * minted_count / total_count, 1) as percent
from report.batch
where status = 'PENDING' and recalled_at is null
order by created_at
limit 20`,
    },
    { title: "Open business days", as: "table", sql: "select * from report.list_open_days() limit 20" },
    { title: "Work that is stuck", as: "table", sql: "select * from report.stuck_work limit 20" },
  ],
};
