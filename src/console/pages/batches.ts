import type { Page } from "../page.ts";
import { perDay } from "./per-day.ts";

export const batches: Page = {
  path: "/batches",
  title: "Batches",
  isInMenu: true,
  filters: [
    { name: "tenant", label: "Tenant", where: "tenant = :tenant" },
    { name: "maker", label: "Maker", where: "maker = :maker" },
    { name: "status", label: "Status", where: "status = :status", choices: ["PENDING", "COMPLETED", "ALLOCATED"] },
  ],
  blocks: [
    {
      title: "Batches",
      as: "table",
      newestBy: { created_at: "timestamptz", batch: "text" },
      sql: `
select created_at, batch, tenant, template, maker, distributor, status, total_count, minted_count,
       suspended_at, recalled_at
from report.batch`,
    },
  ],
};

export const batch: Page = {
  path: "/batches/:batch",
  title: "Batch",
  blocks: [
    { title: "Now", as: "facts", sql: "select * from report.batch where batch = :batch" },
    {
      title: "Coupons by status",
      as: "table",
      sql: `
select s.status, s.coupons, round(100.0 * s.coupons / nullif(b.minted_count, 0), 1) as percent
from report.batch b
cross join lateral (values
  ('ISSUED', b.issued_count), ('LOCKED', b.locked_count), ('REDEEMED', b.redeemed_count),
  ('EXPIRED', b.expired_count), ('VOIDED', b.voided_count)) s (status, coupons)
where b.batch = :batch`,
    },
    {
      title: "Redemptions and reversals per business day",
      as: "chart",
      sql: perDay("report.daily_batch", "batch = :batch", { from: "(select min(business_date) from s)" }),
    },
  ],
  actions: [
    { name: "suspend", label: "Suspend", call: "admin.suspend_batch(:batch, :reason)" },
    { name: "resume", label: "Resume", call: "admin.resume_batch(:batch, :reason)" },
    { name: "recall", label: "Recall", call: "admin.recall_batch(:batch, :reason)" },
  ],
};
