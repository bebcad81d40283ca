import type { Page } from "../page.ts";
import { withId } from "./requests.ts";

/** Where the search leads if what was asked for is about several coupons, or about none. */
export const search: Page = {
  path: "/search",
  title: "Search",
  filters: [{ name: "id", label: "order_id, request_id or idempotency-key", where: "true" }],
  blocks: [
    {
      title: "Locks and redemptions with this order_id",
      as: "table",
      sql: `
select started_at, tenant, coupon, redemption, status, merchant, store, terminal, order_amount,
       discount_amount, currency
from report.redemption
where order_id = :id
order by started_at desc
limit 100`,
    },
    withId,
  ],
};
