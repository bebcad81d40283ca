import type { Page } from "../page.ts";

export const webhooks: Page = {
  path: "/webhooks",
  title: "Webhooks",
  isInMenu: true,
  filters: [{ name: "tenant", label: "Tenant", where: "tenant = :tenant" }],
  blocks: [
    {
      title: "Subscribers",
      as: "table",
      note: "Attempts, failures and times are those of the newest 200 attempts of each.",
      sql: `
select tenant, party as subscriber, health, waiting, parked, attempts, failures, p50_ms, p99_ms,
       last_attempt_at
from report.measure_webhooks(1000)`,
    },
  ],
};

const ofSubscriber = "tenant = :tenant and party = :subscriber";

export const webhook: Page = {
  path: "/webhooks/:tenant/:subscriber",
  title: "Webhook of",
  blocks: [
    { title: "Now", as: "facts", sql: `select * from report.webhook_health where ${ofSubscriber}` },
    {
      title: "Waiting and parked deliveries",
      as: "table",
      sql: `
select next_attempt_at, attempt_count, last_error, status, event_type, event, recorded_at, parked_at
from report.delivery
where ${ofSubscriber}
order by parked_at is null, recorded_at
limit 100`,
    },
    {
      title: "Attempts",
      as: "table",
      newestBy: { attempt_id: "bigint" },
      sql: `
select attempted_at, event, attempt, http_status, error, duration_ms, test_event_type, attempt_id
from report.delivery_attempt
where ${ofSubscriber}`,
    },
  ],
  actions: [
    {
      name: "replay_parked",
      label: "Replay parked",
      call: "admin.replay_parked(:tenant, :subscriber, :reason)",
      note: "Those that wait are tried again by themselves, and parked after 10 attempts.",
    },
    {
      name: "replay",
      label: "Replay event",
      call: "admin.replay_event(:tenant, :event, :reason)",
      fields: { event: "Event, evt_…" },
    },
    {
      name: "test",
      label: "Send test event",
      call: "admin.test_webhook(:tenant, :subscriber, :event_type)",
      fields: { event_type: "Type, for example coupon.redeemed" },
      isWithoutReason: true,
    },
    { name: "enable", label: "Enable", call: "admin.enable_webhook(:tenant, :subscriber, :reason)" },
    { name: "disable", label: "Disable", call: "admin.disable_webhook(:tenant, :subscriber, :reason)" },
  ],
};
