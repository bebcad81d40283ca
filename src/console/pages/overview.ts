import type { Page } from "../page.ts";

// Minutes without movements are 0, not absent.
const perMinute = `
select m.minute, count(l.entry_type) filter (where l.entry_type = 'REDEMPTION') as redemptions,
       count(l.entry_type) filter (where l.entry_type = 'REVERSAL') as reversals
from generate_series(
       date_trunc('minute', now()) - interval '119 minutes', date_trunc('minute', now()),
       interval '1 minute') m (minute)
left join (
  select entry_type, date_trunc('minute', recorded_at) as minute
  from report.ledger
  where recorded_at >= date_trunc('minute', now()) - interval '119 minutes') l using (minute)
group by m.minute
order by m.minute`;

const perDay = `
select business_date::date, coalesce(sum(redemption_count), 0) as redemptions,
       coalesce(sum(reversal_count), 0) as reversals
from generate_series(current_date - 29, current_date, interval '1 day') d (business_date)
left join (select * from report.daily where business_date >= current_date - 29) r
  using (business_date)
group by business_date
order by business_date`;

export const overview: Page = {
  path: "/",
  title: "Overview",
  isInMenu: true,
  refreshSeconds: 5,
  blocks: [
    { title: "Redemptions and reversals per minute", as: "chart", sql: perMinute },
    { title: "Redemptions and reversals per business day", as: "chart", sql: perDay },
    {
      title: "Discounts of the last 30 business days",
      as: "table",
      sql: `
select tenant, currency, sum(redemption_count) as redemptions, sum(redemption_amount) as redeemed,
       sum(reversal_amount) as reversed, sum(net_amount) as net
from report.daily
where business_date >= current_date - 30
group by tenant, currency
order by tenant, currency`,
    },
    {
      title: "Refusals of the last hour",
      as: "table",
      sql: `
select tenant, operation, code, count(*) as refusals
from report.request
where recorded_at > now() - interval '1 hour' and code is not null
group by tenant, operation, code
order by refusals desc, tenant, operation, code
limit 20`,
    },
    {
      title: "Webhooks",
      as: "table",
      sql: `
select tenant, party, health, waiting, failing, parked, oldest_waiting_at, p95_ms_24h
from report.webhook_health
order by parked desc, waiting desc, tenant, party
limit 20`,
    },
    { title: "Work that is stuck", as: "table", sql: "select * from report.stuck_work limit 20" },
  ],
};
