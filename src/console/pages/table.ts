// All pages, in the order of the menu.
import type { Page } from "../page.ts";
import { audit } from "./audit.ts";
import { batch, batches, batchOfCompany } from "./batches.ts";
import { company } from "./company.ts";
import { coupon, couponOfCompany } from "./coupon.ts";
import { feed } from "./feed.ts";
import { invariant, invariants } from "./invariants.ts";
import { merchant, merchants } from "./merchants.ts";
import { overview } from "./overview.ts";
import { parties, party } from "./parties.ts";
import { requests } from "./requests.ts";
import { search } from "./search.ts";
import { statement, statements } from "./statements.ts";
import { template, templates } from "./templates.ts";
import { webhook, webhooks } from "./webhooks.ts";

const ofBoth = [statements, statement, merchants, merchant, parties, party, webhooks, webhook, requests];

const staff: readonly Page[] = [
  overview,
  batches,
  batch,
  templates,
  template,
  coupon,
  ...ofBoth,
  invariants,
  invariant,
  audit,
  search,
];

/** Without a change: a company makes its changes by signed calls. */
const ofCompany = [company, batches, batchOfCompany, couponOfCompany, feed, ...ofBoth, search].map(
  ({ actions: _, ...page }): Page => page,
);

export const pages = { staff, company: ofCompany };
