import type { Page } from "../page.ts";
import { perDay } from "./per-day.ts";
import { sums } from "./sums.ts";

export const merchants: Page = {
  path: "/merchants",
  title: "Merchants",
  isInMenu: true,
  filters: [
    { name: "tenant", label: "Tenant", where: "tenant = :tenant" },
    { name: "merchant", label: "Merchant", where: "merchant = :merchant" },
    { name: "name", label: "Name contains", where: "position(lower(:name) in lower(name)) > 0" },
  ],
  blocks: [
    {
      title: "Merchants",
      as: "table",
      newestBy: { created_at: "timestamptz", tenant: "text", merchant: "text" },
      sql: "select created_at, tenant, merchant, name, party, delegates from report.merchant",
    },
  ],
};

const ofMerchant = "tenant = :tenant and merchant = :merchant";

const sumBy = (column: "store" | "template", view: string): string => `
select ${column}, currency, ${sums}, tenant
from ${view}
where ${ofMerchant} and business_date >= current_date - 29
group by tenant, ${column}, currency
order by redemptions desc, ${column}, currency
limit 1000`;

export const merchant: Page = {
  path: "/merchants/:tenant/:merchant",
  title: "Merchant",
  blocks: [
    { title: "Now", as: "facts", sql: `select * from report.merchant where ${ofMerchant}` },
    {
      title: "Redemptions and reversals of the last 30 business days",
      as: "chart",
      sql: perDay("report.daily_store", `${ofMerchant} and business_date >= current_date - 29`),
    },
    {
      title: "Redemptions and reversals, newest first",
      as: "table",
      newestBy: { page_key: "bigint", position: "bigint" },
      sql: `
select position, recorded_at, entry_type, redemption, coupon, template, store, terminal, order_id, order_amount,
       discount_amount, currency, page_key
from console.merchant_change
where (tenant_id, merchant_id) = (
  select k.tenant_id, k.merchant_id from console.find_merchant(:tenant, :merchant) k)`,
    },
    {
      title: "Refusals of the last hour",
      as: "table",
      sql: `
select operation, code, store, count(*) as refusals, max(recorded_at) as newest, tenant, merchant
from report.request
where recorded_at > now() - interval '1 hour' and http_status <> 200 and ${ofMerchant}
group by tenant, merchant, operation, code, store
order by refusals desc, operation, code, store
limit 100`,
    },
    {
      title: "By store, in the last 30 business days",
      as: "table",
      sql: sumBy("store", "report.daily_store"),
    },
    {
      title: "By template, in the last 30 business days",
      as: "table",
      sql: sumBy("template", "report.daily"),
    },
  ],
};
