import type { Page } from "../page.ts";

export const feed: Page = {
  path: "/events",
  title: "Events",
  isInMenu: true,
  blocks: [
    {
      title: "Your feed, newest first",
      as: "table",
      newestBy: { page_key: "bigint", position: "bigint" },
      sql: "select position, occurred_at, event_type, event, coupon, batch, business_date, page_key from portal.feed",
    },
  ],
};
