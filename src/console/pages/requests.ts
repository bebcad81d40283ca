import type { Block, Page } from "../page.ts";

const columns = `recorded_at, operation, http_status, code, caller, merchant, store, coupon, template,
       tenant, request_id, idempotency_key`;

export const withId: Block = {
  title: "Requests with this request_id or idempotency-key",
  as: "table",
  sql: `
select ${columns}
from report.request where request_id = :id
union all
select ${columns}
from report.request where idempotency_key = :id`,
};

// Calls that succeed are found by their ID only: a day may have millions.
export const requests: Page = {
  path: "/requests",
  title: "Requests",
  isInMenu: true,
  linkedFrom: "code",
  filters: [
    { name: "id", label: "request_id or idempotency-key", where: "request_id = :id or idempotency_key = :id" },
    { name: "tenant", label: "Tenant", where: "tenant = :tenant" },
    { name: "caller", label: "Caller", where: "caller = :caller" },
    { name: "merchant", label: "Merchant", where: "merchant = :merchant" },
    { name: "code", label: "Code", where: "code = :code" },
    {
      name: "since",
      label: "Since, for example 2027-01-31T08:00Z",
      where: "recorded_at >= (:since)::timestamptz",
    },
    { name: "until", label: "Until", where: "recorded_at <= (:until)::timestamptz" },
  ],
  blocks: [
    withId,
    {
      title: "Refused, newest first",
      as: "table",
      newestBy: { recorded_at: "timestamptz", request_id: "text" },
      sql: `
select ${columns}
from report.request
where http_status <> 200`,
    },
  ],
};
