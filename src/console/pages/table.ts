// All pages, in the order of the menu.
import type { Page } from "../page.ts";
import { batch, batches } from "./batches.ts";
import { coupon } from "./coupon.ts";
import { overview } from "./overview.ts";

export const pages: readonly Page[] = [overview, batches, batch, coupon];
