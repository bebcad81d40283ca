import type { Page } from "../page.ts";

const key = "(select coupon_key from report.find_coupon(:coupon))";

export const coupon: Page = {
  path: "/coupons/:coupon",
  title: "Coupon",
  blocks: [
    {
      title: "Now",
      as: "facts",
      sql: `
select tenant, coupon, status, batch, number, template, live_redemption, lock_expires_at, valid_from,
       valid_to, created_at
from report.find_coupon(:coupon)`,
    },
    {
      title: "Locks and redemptions",
      as: "table",
      sql: `
select started_at, redemption, status, merchant, store, terminal, caller, order_id, order_amount,
       discount_amount, currency, lock_expires_at, redeemed_at, ended_at, reversal, reversal_reason
from report.redemption
where tenant_id = (select tenant_id from report.find_coupon(:coupon)) and coupon_key = ${key}
order by started_at`,
    },
    {
      title: "Events",
      as: "table",
      sql: `
select occurred_at, event_type, party, event, redemption, business_date
from report.event
where tenant_id = (select tenant_id from report.find_coupon(:coupon)) and coupon_key = ${key}
order by event_seq`,
    },
  ],
  actions: [
    { name: "release", label: "Release lock", call: "admin.release_lock(:tenant, :coupon, :reason)" },
    { name: "void", label: "Void", call: "admin.void_coupon(:tenant, :coupon, :reason)" },
    {
      name: "extend",
      label: "Extend",
      call: "admin.extend_coupon(:tenant, :coupon, (:valid_to)::timestamptz, :reason)",
      fields: { valid_to: "New end of validity, for example 2027-01-31T23:00Z" },
    },
  ],
};
