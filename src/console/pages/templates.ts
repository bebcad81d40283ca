import type { Page } from "../page.ts";
import { perDay } from "./per-day.ts";
import { sums } from "./sums.ts";

export const templates: Page = {
  path: "/templates",
  title: "Templates",
  isInMenu: true,
  filters: [
    { name: "tenant", label: "Tenant", where: "tenant = :tenant" },
    { name: "maker", label: "Maker", where: "maker = :maker" },
    { name: "template", label: "Template", where: "template = :template" },
    { name: "name", label: "Name contains", where: "position(lower(:name) in lower(name)) > 0" },
  ],
  blocks: [
    {
      title: "Templates",
      as: "table",
      newestBy: { created_at: "timestamptz", tenant: "text", template: "text" },
      sql: `
select created_at, tenant, template, name, maker, distributor, currency, discount_amount, discount_percent,
       valid_from, valid_to
from report.template`,
    },
  ],
};

const ofTemplate = "tenant = :tenant and template = :template";

export const template: Page = {
  path: "/templates/:tenant/:template",
  title: "Template",
  blocks: [
    {
      title: "Now",
      as: "facts",
      note: "merchants: none means all. after_reversal: whether a coupon can be used again after a return.",
      sql: `select * from report.template where ${ofTemplate}`,
    },
    {
      title: "Redemptions and reversals of the last 30 business days",
      as: "chart",
      sql: perDay("report.daily_batch", `${ofTemplate} and business_date >= current_date - 29`),
    },
    {
      title: "By merchant, in the last 30 business days",
      as: "table",
      sql: `
select tenant, merchant, currency, ${sums}
from report.daily
where ${ofTemplate} and business_date >= current_date - 29
group by tenant, merchant, currency
order by redemptions desc, merchant
limit 1000`,
    },
    {
      title: "By batch, in the last 30 business days",
      as: "table",
      sql: `
select batch, currency, ${sums}
from report.daily_batch
where ${ofTemplate} and business_date >= current_date - 29
group by batch, currency
order by redemptions desc, batch
limit 1000`,
    },
  ],
};
