import type { Page } from "../page.ts";

export const statements: Page = {
  path: "/statements",
  title: "Statements",
  isInMenu: true,
  filters: [
    { name: "tenant", label: "Tenant", where: "tenant = :tenant" },
    { name: "distributor", label: "Distributor", where: "distributor = :distributor" },
  ],
  blocks: [
    {
      title: "Closed business days",
      as: "table",
      newestBy: { business_date: "date", tenant: "text", distributor: "text" },
      sql: `
select business_date, tenant, distributor, closed_at, ready_at, entry_count, summary_rows, detail_bytes
from report.statement`,
    },
  ],
};

const ofDay = "tenant = :tenant and distributor = :distributor and business_date = (:business_date)::date";

export const statement: Page = {
  path: "/statements/:tenant/:distributor/:business_date",
  title: "Statement of",
  blocks: [
    { title: "Files", as: "facts", sql: `select * from report.statement where ${ofDay}` },
    {
      title: "Totals",
      as: "table",
      sql: `
select currency, sum(redemption_count) as redemptions, sum(redemption_amount) as redeemed,
       sum(reversal_count) as reversals, sum(reversal_amount) as reversed, sum(net_amount) as net
from report.statement_line
where ${ofDay}
group by currency
order by currency`,
    },
    {
      title: "Lines",
      as: "table",
      sql: `select * from report.statement_line where ${ofDay} order by number limit 1000`,
    },
  ],
};
