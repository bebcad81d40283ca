import type { Page } from "../page.ts";

export const audit: Page = {
  path: "/audit",
  title: "Audit",
  isInMenu: true,
  filters: [
    { name: "tenant", label: "Tenant", where: "tenant = :tenant" },
    { name: "action", label: "Action", where: "action = :action" },
    { name: "target", label: "Target", where: "target = :target" },
  ],
  blocks: [
    {
      title: "Changes, exports and sign-ins",
      as: "table",
      newestBy: { audit_id: "bigint" },
      sql: "select recorded_at, action, target, client, reason, tenant, details, login, audit_id from report.audit",
    },
  ],
};
