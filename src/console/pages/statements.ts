import type { Page } from "../page.ts";
import { downloadFile, verifyFiles } from "./statement-files.ts";
import { sums } from "./sums.ts";

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
    {
      title: "Closed day and files",
      as: "facts",
      note:
        "The sha256 of a file proves that a copy is what was closed. A download breaks off if the data has changed " +
        "since.",
      sql: `select * from report.statement where ${ofDay}`,
    },
    {
      title: "Totals",
      as: "table",
      sql: `
select currency, ${sums}
from report.statement_line
where ${ofDay}
group by currency
order by currency`,
    },
    {
      title: "Lines",
      as: "table",
      sql: `
select number, merchant, template, currency, redemption_count as redemptions, redemption_amount as redeemed,
       reversal_count as reversals, reversal_amount as reversed, net_amount as net, tenant
from report.statement_line
where ${ofDay}
order by number
limit 1000`,
    },
  ],
  files: {
    "detail.csv": (parts, values) => downloadFile(parts, values, "detail"),
    "summary.csv": (parts, values) => downloadFile(parts, values, "summary"),
  },
  actions: [{ name: "verify", label: "Verify the files", call: verifyFiles, isWithoutReason: true }],
};
