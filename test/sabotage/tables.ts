// Guards of the tables against writes with psql, beside those of the sequencer.
import { guard, type Sabotage } from "./sabotage.ts";

const parties = "db/migrations/003-parties.sql";
const batches = "db/migrations/004-batches.sql";
const coupons = "db/migrations/005-coupons.sql";
const redemptions = "db/migrations/006-redemptions.sql";
const events = "db/migrations/007-events.sql";
const feeds = "db/migrations/012-feeds.sql";
const statements = "db/migrations/013-statements.sql";
const deliveries = "db/migrations/014-deliveries.sql";
const closing = "db/migrations/015-closing.sql";

export const tableGuards: Sabotage[] = [
  guard("a lock is redeemed before it expires", redemptions, "\n         or p_redeemed_at >= p_lock_expires_at", ""),
  guard("an expired event is of an EXPIRED coupon", events, "then 'EXPIRED'", "then c.status"),
  guard("a voided event is of a VOIDED coupon", events, "else 'VOIDED'", "else c.status"),
  guard("a coupon has one voided event", events, "create unique index coupon_is", "create index coupon_is"),
  guard("a batch keeps its maker", batches, "new.template_id, new.maker_id,", "new.template_id, old.maker_id,"),
  guard("a batch keeps its master key", batches, "new.valid_to, new.key_version,", "new.valid_to, old.key_version,"),
  guard(
    "a template with a batch keeps its SKUs",
    batches,
    "new.min_order_minor, new.skus,",
    "new.min_order_minor, old.skus,",
  ),
  guard(
    "a template with a batch keeps its least order",
    batches,
    "new.max_discount_minor, new.min_order_minor,",
    "new.max_discount_minor, old.min_order_minor,",
  ),
  guard(
    "a statement keeps its day",
    statements,
    "new.business_date, new.entry_count",
    "old.business_date, new.entry_count",
  ),
  guard(
    "a statement keeps its time",
    statements,
    "new.is_one_of_several, new.closed_at)",
    "new.is_one_of_several, old.closed_at)",
  ),
  guard("a credential keeps its key", parties, "new.access_key, new.party_id)", "old.access_key, new.party_id)"),
  guard("expiry waits for the end of the batch", coupons, "new.valid_to > clock_timestamp()\n    or ", ""),
  guard("expiry passes no ISSUED coupon", coupons, "and c.status = 'ISSUED'\n        and not", "and false and not"),
  guard("an extension is kept while its coupon is ISSUED", coupons, "c.status = 'ISSUED' or c.valid_to", "c.valid_to"),
  guard("an extension is kept until its end", coupons, "'ISSUED' or c.valid_to > clock_timestamp())", "'ISSUED')"),
  guard("an extension has the end of its coupon", coupons, "\n      and c.valid_to = new.valid_to)", ")"),
  guard("a book leaves no day without a statement", closing, "\n      and s.business_date = old.open_on", ""),
  guard("a book moves to the next day", closing, "and new.open_on = (", "and new.open_on >= ("),
  guard("the open day has no statement", closing, "new.business_date >= (", "new.business_date > ("),
  guard("a book begins within a week", statements, "tg_op = 'INSERT' and new.open_on", "false and new.open_on"),
  guard("an abbreviation is no time zone", parties, "time_zone !~ '^[[:alpha:]]+$'", "true"),
  guard("a feed keeps the pages of the last day", feeds, "o.sequenced_at > now() - interval '1 day'", "false"),
  guard("a delivery is deleted with its success", deliveries, "a.attempted_at >= now()", "true"),
  guard("a delivery is not deleted with a failure", deliveries, "\n      and a.http_status between 200 and 299", ""),
  guard("a delivery is deleted with a success of its event", deliveries, "\n      and a.event_id = o.event_id", ""),
];
