import type { Block, Page } from "../page.ts";

const columns = `recorded_at, tenant, caller, operation, http_status, code, request_id, idempotency_key,
       merchant, store, coupon, template`;

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

// A lookup by ID, or a few minutes: a day may have millions.
export const requests: Page = {
  path: "/requests",
  title: "Requests",
  isInMenu: true,
  filters: [
    { name: "id", label: "request_id or idempotency-key", where: "request_id = :id or idempotency_key = :id" },
    { name: "tenant", label: "Tenant", where: "tenant = :tenant" },
    { name: "code", label: "Code", where: "code = :code" },
  ],
  blocks: [
    withId,
    {
      title: "Refused in the last 15 minutes",
      as: "table",
      newestBy: { recorded_at: "timestamptz", request_id: "text" },
      sql: `
select ${columns}
from report.request
where recorded_at > now() - interval '15 minutes' and code is not null`,
    },
  ],
};
