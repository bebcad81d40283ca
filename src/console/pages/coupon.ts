import type { Page } from "../page.ts";

const events = `
select e.occurred_at, e.event_type, e.party, p.feed_position, d.delivery, d.attempts, d.last_answer,
       d.next_attempt_at, d.accepted_at, e.event, e.redemption
from report.find_event(:coupon) e
left join report.find_positions(:coupon) p on p.tenant_id = e.tenant_id and p.event_key = e.event_key
left join report.find_deliveries(:coupon) d on d.tenant_id = e.tenant_id and d.event_key = e.event_key
order by e.event_seq`;

// A company does not see the redemptions of others, so it cannot tell.
const reversed = `
         when c.status = 'REDEEMED' and c.live_redemption is null
           then 'no: its redemption is reversed, and its template issues no coupon again'`;

const now = (more: string): string => `
select c.tenant, c.coupon, c.status,
       case
         when c.status = 'LOCKED' then 'only by whoever locked it'${more}
         when c.status <> 'ISSUED' then 'no'
         when b.batch is null then null
         when b.recalled_at is not null then 'no: its batch is recalled'
         when b.suspended_at is not null then 'no: its batch is suspended'
         when c.valid_from > now() then 'not yet'
         else 'yes'
       end as usable, c.batch, c.number, c.template, c.live_redemption, c.lock_expires_at, c.valid_from,
       c.valid_to, c.created_at
from report.find_coupon(:coupon) c
left join report.batch b on b.tenant = c.tenant and b.batch = c.batch`;

export const coupon: Page = {
  path: "/coupons/:coupon",
  title: "Coupon",
  blocks: [
    { title: "Now", as: "facts", sql: now(reversed) },
    {
      title: "Timeline",
      as: "table",
      sql: `
select happened_at, what, who, reason, discount_amount, currency, merchant, store, terminal, order_id,
       redemption, tenant
from report.find_history(:coupon)
cross join report.find_coupon(:coupon)`,
    },
    {
      title: "Refused calls, newest first",
      as: "table",
      sql: `
select recorded_at, operation, code, caller, merchant, store, request_id, tenant
from report.find_refusals(:coupon, 100)
order by recorded_at desc`,
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
select s.business_date, case when s.business_date is null then p.business_date end as open_day, p.distributor,
       p.number, p.entry, p.entry_type, p.redemption, p.reversal, p.discount_amount, p.currency, p.tenant
from report.find_posting(:coupon) p
left join report.statement s
  on s.tenant = p.tenant and s.distributor = p.distributor and s.business_date = p.business_date
order by p.business_date, p.number`,
    },
  ],
  actions: [
    { name: "release", label: "Release lock", call: "admin.release_lock(:tenant, :coupon, :reason)" },
    { name: "void", label: "Void", call: "admin.void_coupon(:tenant, :coupon, :reason)", note: "For good." },
    {
      name: "extend",
      label: "Extend",
      call: "admin.extend_coupon(:tenant, :coupon, (:valid_to)::timestamptz, :reason)",
      fields: { valid_to: "New end of validity, for example 2027-01-31T23:00Z" },
    },
  ],
};

/** Without what staff and other companies did. */
export const couponOfCompany: Page = {
  ...coupon,
  blocks: coupon.blocks
    .filter(({ title }) => title !== "Timeline")
    .map((block) => {
      if (block.title === "Now") return { ...block, sql: now("") };
      return block.title === "Locks and redemptions" ? { ...block, note: "At your merchants only." } : block;
    }),
};
