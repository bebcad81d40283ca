import type { Page } from "../page.ts";

export const parties: Page = {
  path: "/parties",
  title: "Parties",
  isInMenu: true,
  filters: [
    { name: "tenant", label: "Tenant", where: "tenant = :tenant" },
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

export const party: Page = {
  path: "/parties/:tenant/:party",
  title: "Party",
  blocks: [
    { title: "Now", as: "facts", sql: "select * from report.party where tenant = :tenant and party = :party" },
    {
      title: "As distributor, in the last 30 business days",
      as: "table",
      sql: `
select business_date as day, currency, sum(redemption_count) as redemptions,
       sum(reversal_count) as reversals, sum(net_amount) as net
from report.daily
where tenant = :tenant and distributor = :party and business_date >= current_date - 29
group by business_date, currency
order by day desc, currency`,
    },
    {
      title: "Balance as distributor",
      as: "table",
      sql: `
select currency, redemption_count, redemption_amount, reversal_count, reversal_amount, balance
from report.distributor_balance
where tenant = :tenant and distributor = :party
order by currency`,
    },
    {
      title: "Balance as maker",
      as: "table",
      sql: `
select currency, redemption_count, redemption_amount, reversal_count, reversal_amount, balance
from report.maker_balance
where tenant = :tenant and maker = :party
order by currency`,
    },
  ],
};
