// All pages, in the order of the menu.
import type { Page } from "../page.ts";
import { audit } from "./audit.ts";
import { batch, batches } from "./batches.ts";
import { coupon } from "./coupon.ts";
import { invariant, invariants } from "./invariants.ts";
import { merchant, merchants } from "./merchants.ts";
import { overview } from "./overview.ts";
import { parties, party } from "./parties.ts";
import { requests } from "./requests.ts";
import { search } from "./search.ts";
import { statement, statements } from "./statements.ts";
import { webhook, webhooks } from "./webhooks.ts";

export const pages: readonly Page[] = [
  overview,
  batches,
  batch,
  coupon,
  statements,
  statement,
  merchants,
  merchant,
  parties,
  party,
  webhooks,
  webhook,
  requests,
  invariants,
  invariant,
  audit,
  search,
];
