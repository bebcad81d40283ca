import type { Page } from "../page.ts";
import { days } from "./parties.ts";
import { perDay } from "./per-day.ts";

const lastDays = "business_date >= current_date - 29";

/** What a company sees first. */
export const company: Page = {
  path: "/",
  title: "Overview",
  isInMenu: true,
  refreshSeconds: 5,
  blocks: [
    {
      title: "Your balance as distributor",
      as: "table",
      note: "What the coupons that you distribute took off so far, less what was reversed.",
      sql: `
select distributor, currency, redemption_count as redemptions, redemption_amount as redeemed,
       reversal_count as reversals, reversal_amount as reversed, balance
from portal.distributor_balance
order by distributor, currency`,
    },
    {
      title: "Of your batches, per business day",
      as: "chart",
      sql: perDay("portal.daily_batch", lastDays),
    },
    {
      title: "Your days as distributor",
      as: "table",
      note: "A closed day leads to its statement.",
      sql: days("true"),
    },
    {
      title: "At your merchants, per business day",
      as: "chart",
      sql: perDay("portal.daily_store", `${lastDays} and merchant in (select m.merchant from portal.merchant m)`),
    },
    {
      title: "By merchant, in the last 30 business days",
      as: "table",
      sql: `
select tenant, merchant, currency, sum(redemption_count) as redemptions, sum(redemption_amount) as redeemed,
       sum(reversal_amount) as reversed, sum(net_amount) as net
from portal.daily_store
where ${lastDays}
group by tenant, merchant, currency
order by redemptions desc, merchant, currency
limit 20`,
    },
    {
      title: "By batch, in the last 30 business days",
      as: "table",
      sql: `
select batch, template, currency, sum(redemption_count) as redemptions, sum(redemption_amount) as redeemed,
       sum(reversal_amount) as reversed, sum(net_amount) as net
from portal.daily_batch
where ${lastDays}
group by batch, template, currency
order by redemptions desc, batch
limit 20`,
    },
    {
      title: "Your refused calls of the last hour",
      as: "table",
      sql: `
select operation, code, count(*) as refusals, max(recorded_at) as last_at
from portal.request
where recorded_at > now() - interval '1 hour' and http_status <> 200
group by operation, code
order by refusals desc, operation, code
limit 20`,
    },
    {
      title: "Webhooks",
      as: "table",
      sql: `
select tenant, party as subscriber, health, waiting, failing, parked, oldest_waiting_at, p95_ms_24h
from portal.webhook_health
order by parked desc, waiting desc, party
limit 20`,
    },
  ],
};
