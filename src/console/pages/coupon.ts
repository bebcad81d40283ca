import type { Page } from "../page.ts";

const events = `
select e.occurred_at, e.event_type, e.party, p.feed_position, d.delivery, d.attempts, d.last_answer,
       d.next_attempt_at, d.accepted_at, e.event, e.redemption
from report.find_event(:coupon) e
left join report.find_positions(:coupon) p on p.tenant_id = e.tenant_id and p.event_key = e.event_key
left join report.find_deliveries(:coupon) d on d.tenant_id = e.tenant_id and d.event_key = e.event_key
order by e.event_seq`;

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
      title: "Timeline",
      as: "table",
      sql: `
select happened_at, what, who, discount_amount, currency, merchant, store, terminal, order_id, reason,
       redemption
from report.find_history(:coupon)`,
    },
    {
      title: "Locks and redemptions",
      as: "table",
      sql: `
select started_at, redemption, status, merchant, store, terminal, caller, order_id, order_amount,
       discount_amount, currency, lock_expires_at, redeemed_at, ended_at, reversal, reversal_reason
from report.find_redemption(:coupon)
order by started_at`,
    },
    {
      title: "Events",
      as: "table",
      note: "Attempts of accepted events are those among the next 200 of the subscriber.",
      sql: events,
    },
    {
      title: "Lines of statements",
      as: "table",
      sql: `
select business_date, distributor, number, entry, entry_type, redemption, reversal, discount_amount,
       currency, tenant
from report.find_posting(:coupon)
order by business_date, number`,
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

/** Without what staff and other companies did. */
export const couponOfCompany: Page = { ...coupon, blocks: coupon.blocks.filter(({ title }) => title !== "Timeline") };
