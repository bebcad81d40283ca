import type { Page } from "../page.ts";
import { perDay } from "./per-day.ts";

// It stops a batch whatever its status.
const hold = "case when recalled_at is not null then 'RECALLED' when suspended_at is not null then 'SUSPENDED' end";

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
select created_at, template, batch, status, ${hold} as hold, tenant, maker, distributor, total_count,
       minted_count
from report.batch`,
    },
  ],
};

export const batch: Page = {
  path: "/batches/:batch",
  title: "Batch",
  blocks: [
    {
      title: "Now",
      as: "facts",
      sql: `
select tenant, batch, status, ${hold} as hold, template, maker, distributor, total_count, minted_count,
       issued_count, locked_count, redeemed_count, expired_count, voided_count, redemption_count, reversal_count,
       currency, net_amount, liability_amount, valid_from, valid_to, created_at, completed_at, allocated_at,
       suspended_at, recalled_at, recall_voided_count, recall_finished_at, codes_destroyed_at, key_version,
       mint_lease_until
from report.batch
where batch = :batch`,
    },
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
    {
      title: "Suspended, resumed, recalled and patched",
      as: "table",
      sql: `
select recorded_at, action, coalesce(details ->> 'access_key', client) as who, reason
from report.find_audit(:batch)
order by audit_id desc
limit 100`,
    },
  ],
  actions: [
    { name: "suspend", label: "Suspend", call: "admin.suspend_batch(:batch, :reason)" },
    { name: "resume", label: "Resume", call: "admin.resume_batch(:batch, :reason)" },
    {
      name: "recall",
      label: "Recall",
      call: "admin.recall_batch(:batch, :reason)",
      note: "Voids all its unused coupons, for good.",
    },
  ],
};

/** Without what staff did. */
export const batchOfCompany: Page = {
  ...batch,
  blocks: batch.blocks.filter(({ title }) => title !== "Suspended, resumed, recalled and patched"),
};
