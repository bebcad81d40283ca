import type { Page } from "../page.ts";
import { sums } from "./sums.ts";

export const parties: Page = {
  path: "/parties",
  title: "Parties",
  isInMenu: true,
  filters: [
    { name: "tenant", label: "Tenant", where: "tenant = :tenant" },
    { name: "party", label: "Party", where: "party = :party" },
    { name: "name", label: "Name contains", where: "position(lower(:name) in lower(name)) > 0" },
  ],
  blocks: [
    {
      title: "Parties",
      as: "table",
      newestBy: { created_at: "timestamptz", tenant: "text", party: "text" },
      sql: "select created_at, tenant, party, name, time_zone, webhook_url, webhook_disabled_at from report.party",
    },
  ],
};

// The balance now, less what came after each day: lines of closed days and entries of open days.
const balances = (role: "distributor" | "maker"): string => `
with s as (
  select business_date, currency, sum(net_amount) as net
  from report.${role === "maker" ? "daily_batch" : "daily_distributor"}
  where tenant = :tenant and ${role} = :party and business_date >= current_date - 28
  group by business_date, currency)
select d.day::date as business_date, b.currency,
       b.balance - coalesce(sum(s.net) filter (where s.business_date > d.day), 0) as balance
from report.${role}_balance b
cross join generate_series(
  current_date - 29, greatest(current_date, (select max(business_date) from s)), interval '1 day') d (day)
left join s on s.currency = b.currency
where b.tenant = :tenant and b.${role} = :party
group by d.day, b.currency, b.balance
order by business_date, b.currency`;

const balance = (role: "distributor" | "maker"): string => `
select currency, redemption_count, redemption_amount, reversal_count, reversal_amount, balance
from report.${role}_balance
where tenant = :tenant and ${role} = :party
order by currency`;

const ofDistributor = "tenant = :tenant and distributor = :party";

/** Of a distributor: a closed day leads to its statement. */
export const days = (condition: string): string => `
select case when bool_and(is_closed) then business_date end as business_date,
       case when not bool_and(is_closed) then business_date end as open_day, currency,
       ${sums}, distributor, tenant
from report.daily_distributor y
where ${condition} and y.business_date >= current_date - 29
group by y.business_date, currency, distributor, tenant
order by y.business_date desc, currency`;

export const party: Page = {
  path: "/parties/:tenant/:party",
  title: "Party",
  blocks: [
    { title: "Now", as: "facts", sql: "select * from report.party where tenant = :tenant and party = :party" },
    {
      title: "Balance as distributor",
      as: "table",
      note: "What the coupons that it distributes took off so far, less what was reversed.",
      sql: balance("distributor"),
    },
    { title: "Balance as maker", as: "table", note: "The same of the batches that it made.", sql: balance("maker") },
    { title: "Balance as distributor at the end of each business day", as: "chart", sql: balances("distributor") },
    { title: "Balance as maker at the end of each business day", as: "chart", sql: balances("maker") },
    { title: "As distributor, in the last 30 business days", as: "table", sql: days(ofDistributor) },
  ],
};
