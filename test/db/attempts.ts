// What somebody with psql might try against the tables, and the rule that refuses it.
// Statements are built when they are tried: `id` is filled by then (see tables.test.ts).
export const id: Record<string, string> = {};

const of = (key: string) => `coupon_id = '${id[key]}'`;
const red = (key: string) => `redemption_id = '${id[`${key}_red`]}'`;
const bat = (key: string) => `batch_id = ${id[key]}`;
const coupon = (key: string, change: string) => () => `update core.coupon set ${change} where ${of(key)}`;
const redemption = (key: string, change: string) => () => `update core.redemption set ${change} where ${red(key)}`;
const batch = (key: string, change: string) => () => `update core.batch set ${change} where ${bat(key)}`;
const unused = (change: string) => () => `update core.template set ${change} where external_id = 'tpl_unused'`;
const row =
  (table: string, change: string, where = "true") =>
  () =>
    `update core.${table} set ${change} where ${where}`;
// A copy of a row with some columns changed, whatever else the table has.
export const copy = (table: string, from: string, patch: string) =>
  `insert into core.${table} overriding system value select y.* from (select z as x from core.${table} z where ${from} limit 1) o, jsonb_populate_record(o.x, ${patch}) y`;
const copyOf = (table: string, patch: string) => () => copy(table, "true", `'${patch}'`);
const live = (key: string, status: string) =>
  copy(
    "redemption",
    red(key),
    `jsonb_build_object('redemption_id', gen_random_uuid(), 'status', '${status}', 'redeemed_at', ${status === "REDEEMED" ? "now()" : "null"}, 'ended_at', null)`,
  );
const newCoupon = (change: string) =>
  copy(
    "coupon",
    of("issued"),
    `jsonb_build_object('coupon_id', gen_random_uuid(), 'lookup_hash', gen_random_uuid(), 'batch_id', ${id["pending"]}, 'number', 1) || ${change}`,
  );
const entry = (type: string, key: string, reversal: string, amount: number) => `
  insert into core.ledger_entry (tenant_id, entry_id, entry_type, distributor_id, amount_minor, currency, recorded_at)
  select tenant_id, coalesce(${reversal}, redemption_id), '${type}', ${id["distributor"]}, ${amount}, currency, now()
  from core.redemption where ${red(key)}`;
const told = (key: string) => `
  insert into core.event (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
  select tenant_id, redemption_id, 'coupon.redeemed', ${id["distributor"]}, coupon_id, now(), now() from core.redemption where ${red(key)}`;
const reversalId = "00000000-0000-7000-8000-000000000001";
const reversalOf = (key: string) => `
  insert into core.reversal select tenant_id, '${reversalId}', redemption_id, 0, null, now() from core.redemption where ${red(key)}`;
const toldReversal = (key: string) =>
  told(key).replace("redemption_id, 'coupon.redeemed'", `'${reversalId}', 'coupon.reversed'`);

// A lock redeemed, with a ledger entry of this amount.
const written = (key: string, amount: number) => `
  update core.redemption set status = 'REDEEMED', redeemed_at = now() where ${red(key)};
  update core.coupon set status = 'REDEEMED' where ${of(key)}; ${told(key)}; ${entry("REDEMPTION", key, "null", amount)}`;

// By what it is refused, what is tried, and how.
export const cases: [by: string, tried: string, sql: () => string][] = [
  // coupons
  ["coupon_has_one_live_redemption", "a second live lock", () => live("locked", "LOCKED")],
  ["coupon_has_one_live_redemption", "a redemption beside a lock", () => live("locked", "REDEEMED")],
  ["coupon_has_one_live_redemption", "a second redemption", () => live("redeemed", "REDEEMED")],
  ["coupon_agrees_with_its_redemptions", "a lock of a coupon that stays ISSUED", () => live("cancelled", "LOCKED")],
  [
    "coupon_agrees_with_its_redemptions",
    "a redemption of a coupon that stays ISSUED",
    () => live("cancelled", "REDEEMED"),
  ],
  [
    "redemption_agrees_with_the_ledger",
    "a reversed redemption that was in no ledger",
    () =>
      copy(
        "redemption",
        red("cancelled"),
        `jsonb_build_object('redemption_id', gen_random_uuid(), 'status', 'REVERSED', 'redeemed_at', now(), 'ended_at', now())`,
      ),
  ],
  [
    "redemption_agrees_with_the_ledger",
    "a new redemption that is in no ledger",
    () =>
      `with new as (${live("cancelled", "REDEEMED")}) update core.coupon set status = 'REDEEMED' where ${of("cancelled")}`,
  ],
  ["coupon_agrees_with_its_redemptions", "LOCKED without a lock", coupon("issued", "status = 'LOCKED'")],
  ["coupon_agrees_with_its_redemptions", "REDEEMED without a redemption", coupon("issued", "status = 'REDEEMED'")],
  ["coupon_agrees_with_its_redemptions", "REDEEMED while only locked", coupon("locked", "status = 'REDEEMED'")],
  ["coupon_agrees_with_its_redemptions", "VOIDED without a voiding", coupon("issued", "status = 'VOIDED'")],
  ["coupon_agrees_with_its_redemptions", "ISSUED while locked", coupon("locked", "status = 'ISSUED'")],
  ["coupon_agrees_with_its_redemptions", "ISSUED while redeemed", coupon("redeemed", "status = 'ISSUED'")],
  ["coupon_agrees_with_its_redemptions", "EXPIRED while locked", coupon("locked", "status = 'EXPIRED'")],
  ["coupon_transition_is_legal", "a voided coupon back", coupon("voided", "status = 'ISSUED'")],
  ["coupon_transition_is_legal", "a redeemed coupon voided", coupon("redeemed", "status = 'VOIDED'")],
  ["coupon_transition_is_legal", "a redeemed coupon locked", coupon("redeemed", "status = 'LOCKED'")],
  [
    "coupon_transition_is_legal",
    "an expired coupon issued, its end passed",
    () =>
      `update core.coupon set status = 'EXPIRED' where ${of("past")}; update core.coupon set status = 'ISSUED' where ${of("past")}`,
  ],
  ["coupon_identity_is_fixed", "another code", coupon("issued", "lookup_hash = gen_random_uuid()")],
  ["coupon_identity_is_fixed", "another batch", coupon("issued", `batch_id = ${"0"}`)],
  ["coupon_identity_is_fixed", "another number", coupon("issued", "number = 99")],
  ["coupon_status_is_known", "a state that is none", () => newCoupon(`'{"status": "USED"}'`)],
  ["coupon_validity_is_forward", "an end before the beginning", coupon("issued", "valid_to = valid_from")],
  ["time_is_finite", "a coupon that never ends", coupon("issued", "valid_to = 'infinity'")],
  ["time_is_finite", "a lock that never ends", redemption("locked", "lock_expires_at = 'infinity'")],
  [
    "time_is_finite",
    "a redemption before all time",
    redemption("locked", "status = 'REDEEMED', redeemed_at = '-infinity'"),
  ],
  [
    "time_is_finite",
    "money at no time",
    () =>
      `${told("locked")}; ${entry("REDEMPTION", "locked", "null", 500).replace("currency, now()", "currency, timestamptz 'infinity'")}`,
  ],
  ["time_is_finite", "an event at no time", () => told("locked").replace("now(), now()", "now(), 'infinity'")],
  ["time_is_finite", "a batch that never ends", batch("allocated", "valid_to = 'infinity'")],
  ["number_is_within_batch", "number 0", () => newCoupon(`'{"number": 0}'`)],
  ["number_is_within_batch", "one coupon more than the batch has", () => newCoupon(`'{"number": 4}'`)],
  [
    "number_is_within_batch",
    "a coupon for a completed batch",
    () => newCoupon(`'{"number": 2, "batch_id": ${id["completed"]}}'`),
  ],
  ["number_is_within_batch", "a coupon of no batch", () => newCoupon(`'{"batch_id": 2147483647}'`)],
  ["coupon_is_minted_issued", "a coupon minted as redeemed", () => newCoupon(`'{"status": "REDEEMED"}'`)],
  [
    "code_is_unique_in_tenant",
    "the code of another coupon",
    () => newCoupon("jsonb_build_object('lookup_hash', (o.x).lookup_hash)"),
  ],
  [
    "number_is_unique_in_batch",
    "the number of another coupon",
    () => newCoupon(`jsonb_build_object('batch_id', (o.x).batch_id, 'number', (o.x).number)`),
  ],
  ["coupon_is_kept", "a coupon deleted", () => `delete from core.coupon where ${of("issued")}`],
  ["coupon_is_kept", "all coupons truncated", () => "truncate core.coupon cascade"],
  // redemptions and money
  ["redemption_terms_are_fixed", "another discount", redemption("redeemed", "discount_minor = 1")],
  ["redemption_terms_are_fixed", "another order", redemption("redeemed", "order_minor = order_minor + 1")],
  ["redemption_terms_are_fixed", "another merchant", redemption("redeemed", "merchant_id = 0")],
  [
    "redemption_terms_are_fixed",
    "another coupon",
    redemption("cancelled", `coupon_id = '00000000-0000-7000-8000-000000000001'`),
  ],
  ["redemption_terms_are_fixed", "another time of redemption", redemption("redeemed", "redeemed_at = now()")],
  ["redemption_terms_are_fixed", "another time of reversal", redemption("reversed", "ended_at = now()")],
  [
    "redemption_agrees_with_the_ledger",
    "a reversal at another time than its redemption's end",
    () =>
      `${reversalOf("redeemed")}; update core.redemption set status = 'REVERSED', ended_at = now() - interval '1 day' where ${red("redeemed")}; ${toldReversal("redeemed")}; ${entry("REVERSAL", "redeemed", `'${reversalId}'`, -500)}`,
  ],
  [
    "redemption_transition_is_legal",
    "a redemption un-redeemed",
    redemption("redeemed", "status = 'CANCELLED', ended_at = now()"),
  ],
  ["redemption_transition_is_legal", "a cancelled lock taken again", redemption("cancelled", "status = 'LOCKED'")],
  ["redemption_transition_is_legal", "a reversal undone", redemption("reversed", "status = 'REDEEMED'")],
  [
    "coupon_agrees_with_its_redemptions",
    "a lock cancelled behind the coupon's back",
    redemption("locked", "status = 'CANCELLED', ended_at = now()"),
  ],
  [
    "redemption_agrees_with_the_ledger",
    "a redemption that is in no ledger",
    () =>
      `update core.redemption set status = 'REDEEMED', redeemed_at = now() where ${red("locked")}; update core.coupon set status = 'REDEEMED' where ${of("locked")}`,
  ],
  [
    "redemption_agrees_with_the_ledger",
    "a reversal that is in no ledger",
    redemption("redeemed", "status = 'REVERSED', ended_at = now()"),
  ],
  [
    "ledger_agrees_with_the_redemption",
    "money for a lock",
    () => `${told("locked")}; ${entry("REDEMPTION", "locked", "null", 500)}`,
  ],
  ["each_movement_is_told", "money that no event tells of", () => entry("REDEMPTION", "locked", "null", 500)],
  ["ledger_agrees_with_the_redemption", "less than was granted", () => written("locked", 499)],
  [
    "ledger_agrees_with_the_redemption",
    "money of the future",
    () => written("locked", 500).replace("currency, now()", "currency, now() + interval '36 years'"),
  ],
  ["redemption_agrees_with_the_ledger", "a reversal of a redemption that stays", () => reversalOf("redeemed")],
  ["redemption_agrees_with_the_ledger", "a reversal of a lock", () => reversalOf("cancelled")],
  ["ledger_agrees_with_the_redemption", "a negative redemption", () => written("locked", -500)],
  [
    "ledger_agrees_with_the_redemption",
    "a reversal that costs as much again",
    () =>
      `${reversalOf("redeemed")}; update core.redemption set status = 'REVERSED', ended_at = now() where ${red("redeemed")}; ${toldReversal("redeemed")}; ${entry("REVERSAL", "redeemed", `'${reversalId}'`, 500)}`,
  ],
  ["entry_type_is_known", "another kind of entry", () => entry("CORRECTION", "locked", "null", 5)],
  ["ledger_entry_pkey", "a second entry for one redemption", () => entry("REDEMPTION", "redeemed", "null", 500)],
  ["redemption_is_reversed_once", "a second reversal", () => reversalOf("reversed")],
  [
    "each_movement_is_told",
    "an entry of a distributor that is not told",
    () =>
      `${told("locked")}; ${entry("REDEMPTION", "locked", "null", 500).replace(`${id["distributor"]}, 500`, "2147483647, 500")}`,
  ],
  [
    "redemption_is_of_a_coupon_at_a_merchant",
    "a redemption of no coupon",
    () =>
      copy(
        "redemption",
        red("cancelled"),
        `jsonb_build_object('redemption_id', gen_random_uuid(), 'coupon_id', gen_random_uuid())`,
      ),
  ],
  [
    "redemption_is_of_a_coupon_at_a_merchant",
    "a redemption at no merchant",
    () =>
      copy(
        "redemption",
        red("cancelled"),
        `jsonb_build_object('redemption_id', gen_random_uuid(), 'merchant_id', 2147483647, 'ended_at', now())`,
      ),
  ],
  [
    "event_is_for_whom_it_concerns",
    "an event for another party",
    () => told("locked").replace(`'coupon.redeemed', ${id["distributor"]}`, "'coupon.redeemed', 2147483647"),
  ],
  [
    "event_is_for_whom_it_concerns",
    "an event of another coupon's redemption",
    () => told("locked").replace("coupon_id, now()", `'${id["issued"]}', now()`),
  ],
  [
    "event_is_for_whom_it_concerns",
    "an event of another coupon's reversal",
    () =>
      `${reversalOf("redeemed")}; ${toldReversal("redeemed").replace("coupon_id, now()", `'${id["issued"]}', now()`)}`,
  ],
  [
    "event_is_for_whom_it_concerns",
    "an event of no coupon",
    () => told("locked").replace("coupon_id, now()", "gen_random_uuid(), now()"),
  ],
  [
    "event_is_for_whom_it_concerns",
    "an event of no batch",
    () =>
      copy(
        "event",
        "batch_id is not null",
        "jsonb_build_object('event_id', gen_random_uuid(), 'event_seq', 888888888, 'batch_id', 2147483647)",
      ),
  ],
  [
    "event_is_for_whom_it_concerns",
    "an event of a day for nobody",
    () =>
      copy(
        "event",
        "business_date is not null",
        "jsonb_build_object('event_id', gen_random_uuid(), 'event_seq', 888888888, 'party_id', 2147483647)",
      ),
  ],
  [
    "posting_is_of_its_distributor",
    "an entry on the books of another distributor",
    () => `insert into core.posting values (${id["ten_a"]}, 2147483647, '2030-01-01', 1, '${id["unposted"]}')`,
  ],
  ["feed_goes_forward", "positions given twice", row("feed", "last_position = 0")],
  ["feed_goes_forward", "a feed given to another party", row("feed", "party_id = 2147483647")],
  ["feed_is_kept", "feeds deleted", () => "delete from core.feed"],
  ["ledger_book_is_kept", "books deleted", () => "delete from core.ledger_book"],
  ["open_day_goes_forward", "books given to another party", row("ledger_book", "party_id = 2147483647")],
  [
    "event_is_of_its_feed",
    "an event in a feed that is not",
    () => copy("feed_event", "true", "jsonb_build_object('event_id', gen_random_uuid(), 'party_id', 2147483647)"),
  ],
  [
    "event_is_of_its_feed",
    "no event in a feed",
    () => copy("feed_event", "true", "jsonb_build_object('event_id', gen_random_uuid(), 'position', 999999)"),
  ],
  [
    "event_is_of_its_feed",
    "a batch's event in a feed",
    () =>
      copy(
        "feed_event",
        "true",
        "jsonb_build_object('position', 999999, 'event_id', (select event_id from core.event where batch_id is not null limit 1))",
      ),
  ],
  [
    "posting_is_of_its_distributor",
    "no entry on the books",
    () => `insert into core.posting values (${id["ten_a"]}, ${id["distributor"]}, '2030-01-01', 1, gen_random_uuid())`,
  ],
  ["ledger_is_immutable", "an amount corrected", row("ledger_entry", "amount_minor = 0")],
  ["ledger_is_immutable", "an entry deleted", () => "delete from core.ledger_entry"],
  ["ledger_is_immutable", "the ledger truncated", () => "truncate core.ledger_entry cascade"],
  [
    "status_agrees_with_times",
    "a state that is none",
    () =>
      copy(
        "redemption",
        red("cancelled"),
        `jsonb_build_object('redemption_id', gen_random_uuid(), 'status', 'DONE', 'ended_at', null)`,
      ),
  ],
  [
    "status_agrees_with_times",
    "a redemption that was cancelled",
    () =>
      copy(
        "redemption",
        red("redeemed"),
        `jsonb_build_object('redemption_id', gen_random_uuid(), 'status', 'CANCELLED', 'ended_at', now())`,
      ),
  ],
  ["status_agrees_with_times", "a lock without an end", redemption("locked", "lock_expires_at = null")],
  [
    "status_agrees_with_times",
    "a lock of more than 7 days",
    redemption("locked", "lock_expires_at = started_at + interval '169 hours'"),
  ],
  ["status_agrees_with_times", "redeemed without a time", redemption("locked", "status = 'REDEEMED'")],
  ["status_agrees_with_times", "a live lock that has ended", redemption("locked", "ended_at = now()")],
  [
    "amount_is_not_negative",
    "a negative discount",
    () =>
      copy(
        "redemption",
        red("cancelled"),
        `jsonb_build_object('redemption_id', gen_random_uuid(), 'discount_minor', -1)`,
      ),
  ],
  [
    "discount_is_within_order",
    "a discount beyond the order",
    () =>
      copy(
        "redemption",
        red("cancelled"),
        `jsonb_build_object('redemption_id', gen_random_uuid(), 'order_minor', 499)`,
      ),
  ],
  ["redemption_is_kept", "a redemption deleted", () => `delete from core.redemption where ${red("cancelled")}`],
  ["reversal_is_kept", "a reversal changed", row("reversal", "reason = 'another'")],
  ["voiding_is_kept", "a voiding deleted", () => "delete from core.voiding"],
  [
    "voiding_is_at_a_merchant",
    "a voiding at no merchant",
    () =>
      `insert into core.voiding select tenant_id, coupon_id, 2147483647, 0, null, now() from core.coupon where ${of("issued")}; update core.coupon set status = 'VOIDED' where ${of("issued")}`,
  ],
  [
    "voiding_agrees_with_its_coupon",
    "a voiding of a coupon that stays ISSUED",
    () =>
      `insert into core.voiding select tenant_id, coupon_id, null, 0, null, now() from core.coupon where ${of("issued")}`,
  ],
  ["event_is_immutable", "an event changed", row("event", "occurred_at = now()")],
  ["event_is_immutable", "events deleted", () => "delete from core.event"],
  [
    "event_is_of_its_type",
    "an event of a batch and a coupon",
    () =>
      copy(
        "event",
        "coupon_id is not null",
        `jsonb_build_object('event_id', gen_random_uuid(), 'event_seq', 999999, 'batch_id', 1)`,
      ),
  ],
  [
    "event_is_of_its_type",
    "a batch that was redeemed",
    () =>
      copy(
        "event",
        "batch_id is not null",
        `jsonb_build_object('event_id', gen_random_uuid(), 'event_seq', 999999, 'event_type', 'coupon.redeemed')`,
      ),
  ],
  [
    "event_is_of_its_type",
    "an event that is none",
    () =>
      copy(
        "event",
        "true",
        `jsonb_build_object('event_id', gen_random_uuid(), 'event_seq', 999999, 'event_type', 'coupon.sold')`,
      ),
  ],
  [
    "event_is_for_whom_it_concerns",
    "a redemption told that is none",
    () =>
      copy(
        "event",
        "event_type = 'coupon.redeemed'",
        `jsonb_build_object('event_id', gen_random_uuid(), 'event_seq', 999999)`,
      ),
  ],
  [
    "event_is_for_whom_it_concerns",
    "a redemption told as its reversal",
    () => told("locked").replace("coupon.redeemed", "coupon.reversed"),
  ],
  // batches and templates
  ["batch_is_fixed_at_submission", "another distributor", batch("allocated", "distributor_id = 0")],
  ["batch_is_fixed_at_submission", "another end", batch("allocated", "valid_to = valid_to + interval '1 day'")],
  ["batch_is_fixed_at_submission", "another total", batch("pending", "total_count = 4")],
  ["batch_is_fixed_at_submission", "another salt", batch("allocated", "salt = '\\x00'")],
  [
    "batch_transition_is_legal",
    "a release taken back",
    batch("allocated", "status = 'COMPLETED', allocated_at = null"),
  ],
  [
    "batch_transition_is_legal",
    "a release before the end",
    batch("pending", "status = 'ALLOCATED', minted_count = 3, completed_at = now(), allocated_at = now()"),
  ],
  ["batch_transition_is_legal", "coupons uncounted", batch("allocated", "minted_count = 0")],
  [
    "batch_is_pending_until_all_are_minted",
    "completed too early",
    batch("pending", "status = 'COMPLETED', completed_at = now()"),
  ],
  ["minted_count_is_within_total", "more coupons than submitted", batch("pending", "minted_count = 4")],
  [
    "completed_at_agrees_with_status",
    "completed without a time",
    batch("pending", "status = 'COMPLETED', minted_count = 3"),
  ],
  ["allocated_at_agrees_with_status", "released without a time", batch("completed", "status = 'ALLOCATED'")],
  ["salt_is_kept_until_codes_are_destroyed", "a salt lost", batch("allocated", "salt = null")],
  [
    "batch_validity_is_forward",
    "an end before the beginning",
    () =>
      copy(
        "batch",
        bat("pending"),
        `jsonb_build_object('batch_id', 2147483647, 'external_id', 'bat_other', 'request_id', 'other', 'idempotency_key', null, 'valid_to', (o.x).valid_from)`,
      ),
  ],
  ["batch_status_is_known", "a state that is none", batch("completed", "status = 'LOST'")],
  [
    "batch_external_id_is_well_formed",
    "an id of another kind",
    () => copy("batch", bat("pending"), `'{"batch_id": 999, "external_id": "tpl_1", "request_id": "new"}'`),
  ],
  [
    "total_count_is_1_to_10_million",
    "an empty batch",
    () =>
      copy(
        "batch",
        bat("pending"),
        `'{"batch_id": 999, "external_id": "bat_1", "request_id": "new", "total_count": 0}'`,
      ),
  ],
  [
    "total_count_is_1_to_10_million",
    "a batch beyond the limit",
    () =>
      copy(
        "batch",
        bat("pending"),
        `'{"batch_id": 999, "external_id": "bat_1", "request_id": "new", "total_count": 10000001}'`,
      ),
  ],
  [
    "batch_create_runs_once",
    "the same request once more",
    () => copy("batch", bat("pending"), `'{"batch_id": 999, "external_id": "bat_1", "idempotency_key": "new"}'`),
  ],
  [
    "batch_create_runs_once_a_key",
    "the same idempotency-key once more",
    () => copy("batch", bat("pending"), `'{"batch_id": 999, "external_id": "bat_1", "request_id": "new"}'`),
  ],
  ["expired_through_is_within_total", "more coupons expired than there are", batch("pending", "expired_through = 4")],
  [
    "batch_external_id_key",
    "the id of another batch",
    () => copy("batch", bat("pending"), `'{"batch_id": 999, "request_id": "new", "idempotency_key": "new"}'`),
  ],
  ["batch_is_kept", "a batch deleted", () => "delete from core.batch"],
  ["batch_is_kept", "all batches truncated", () => "truncate core.batch cascade"],
  [
    "template_with_batches_keeps_its_terms",
    "another discount",
    row("template", "discount_minor = 1", "external_id = 'tpl_fixed'"),
  ],
  [
    "template_with_batches_keeps_its_terms",
    "another rule after a reversal",
    row("template", "after_reversal = 'reissued'", "external_id = 'tpl_fixed'"),
  ],
  ["template_is_kept", "a template deleted", () => "delete from core.template where external_id = 'tpl_unused'"],
  ["discount_is_fixed_or_percent", "both kinds at once", unused("discount_percent = 10")],
  ["discount_is_fixed_or_percent", "no kind", unused("discount_type = 'gift'")],
  ["fixed_discount_is_positive", "nothing off", unused("discount_minor = 0")],
  [
    "percent_is_within_0_and_100",
    "more than everything off",
    unused("discount_type = 'percent', discount_minor = null, discount_percent = 100.01"),
  ],
  [
    "max_discount_is_positive",
    "at most nothing",
    unused("discount_type = 'percent', discount_minor = null, discount_percent = 1, max_discount_minor = 0"),
  ],
  ["amount_is_not_negative", "a negative minimum", unused("min_order_minor = -1")],
  ["skus_are_not_empty", "a list of no skus", unused("skus = '{}'")],
  ["template_validity_is_forward", "an end before the beginning", unused("valid_to = valid_from")],
  ["lock_ttl_is_1_second_to_7_days", "a lock for ever", unused("lock_ttl_seconds = 604801")],
  ["lock_ttl_is_1_second_to_7_days", "a lock for no time", unused("lock_ttl_seconds = 0")],
  ["after_reversal_is_known", "another rule after a reversal", unused("after_reversal = 'maybe'")],
  [
    "template_external_id_is_well_formed",
    "an id of another kind",
    copyOf("template", '{"template_id": 999, "external_id": "TPL_1"}'),
  ],
  ["template_tenant_id_external_id_key", "the id of another template", copyOf("template", '{"template_id": 999}')],
  // feeds, statements, deliveries
  ["feed_event_is_immutable", "a page changed after it was read", row("feed_event", "body = '{}'")],
  ["event_is_sequenced_once", "an event twice in a feed", copyOf("feed_event", '{"position": 999}')],
  ["position_is_positive", "position 0", copyOf("feed_event", '{"position": 0}')],
  [
    "skipped_positions_are_within_the_feed",
    "more positions skipped than there are",
    row("feed", "skipped_count = last_position + 1"),
  ],
  [
    "last_position_is_not_negative",
    "a feed before its beginning",
    () => copy("feed", "true", "jsonb_build_object('party_id', 2147483647, 'last_position', -1)"),
  ],
  ["sequencer_has_one_row", "a second sequencer", () => "insert into core.sequencer (is_only) values (false)"],
  [
    "closed_day_is_closed",
    "an entry for a closed day",
    () =>
      `insert into core.posting values (${id["ten_a"]}, ${id["distributor"]}, '${id["day"]}', 999, '${id["unposted"]}')`,
  ],
  [
    "entry_is_posted_once",
    "an entry on two days",
    () => copy("posting", "true", `jsonb_build_object('business_date', '${id["day"]}'::date + 1)`),
  ],
  ["posting_number_is_positive", "number 0", copyOf("posting", '{"number": 0}')],
  ["posting_is_immutable", "an entry moved to another day", row("posting", "business_date = business_date + 1")],
  ["posting_is_immutable", "postings deleted", () => "delete from core.posting"],
  ["closed_statement_never_changes", "another number of entries", row("statement", "entry_count = 99")],
  [
    "closed_statement_never_changes",
    "other files than before",
    row("statement", "detail_sha256 = 'x'", "ready_at is not null"),
  ],
  ["files_are_described_when_ready", "ready without files", row("statement", "ready_at = now()", "ready_at is null")],
  ["statement_is_kept", "a statement deleted", () => "delete from core.statement"],
  ["statement_line_is_immutable", "a line of a summary changed", row("statement_line", "redemption_minor = 0")],
  [
    "line_has_entries",
    "a line of nothing",
    copyOf("statement_line", '{"number": 999, "redemption_count": 0, "reversal_count": 0}'),
  ],
  ["open_day_goes_forward", "a closed day opened again", row("ledger_book", "open_on = open_on - 1")],
  ["attempt_count_is_0_to_10", "an eleventh attempt", row("delivery", "attempt_count = 11")],
  // who is who
  ["identity_is_fixed", "a tenant renamed", row("tenant", "external_id = 'ten_new'")],
  ["identity_is_fixed", "a party renamed", row("party", "external_id = 'pty_new'")],
  ["identity_is_fixed", "a merchant renamed", row("merchant", "external_id = 'mch_new'")],
  ["identity_is_fixed", "a template renamed", unused("external_id = 'tpl_new'")],
  ["identity_is_fixed", "another key for a tenant", row("tenant", "tenant_id = default")],
  ["identity_is_fixed", "another key for a party", row("party", "party_id = default")],
  ["identity_is_fixed", "another key for a merchant", row("merchant", "merchant_id = default")],
  ["identity_is_fixed", "a merchant of another tenant", row("merchant", "tenant_id = tenant_id + 1")],
  ["identity_is_fixed", "another key for a template", unused("template_id = default")],
  ["credential_stands_for_one_caller", "another key for a credential", row("credential", "credential_id = default")],
  [
    "variant_is_known",
    "a third variant",
    () => "insert into core.tenant (external_id, name, variant, amount_unit) values ('ten_c', 'c', 'C', 'major')",
  ],
  [
    "amount_unit_is_known",
    "a third unit",
    () => "insert into core.tenant (external_id, name, variant, amount_unit) values ('ten_c', 'c', 'A', 'cents')",
  ],
  ["variant_and_unit_are_fixed_in_use", "the other variant", row("tenant", "variant = 'B'", "external_id = 'ten_a'")],
  ["variant_and_unit_are_fixed_in_use", "the other unit", row("tenant", "amount_unit = 'minor'")],
  [
    "tenant_external_id_is_well_formed",
    "an id of another kind",
    copyOf("tenant", '{"tenant_id": 999, "external_id": "acme"}'),
  ],
  ["tenant_external_id_key", "the id of another tenant", copyOf("tenant", '{"tenant_id": 999}')],
  ["tenant_is_kept", "a tenant deleted", () => "delete from core.tenant"],
  [
    "party_external_id_is_well_formed",
    "an id of another kind",
    copyOf("party", '{"party_id": 999, "external_id": "ten_1"}'),
  ],
  ["party_tenant_id_external_id_key", "the id of another party", copyOf("party", '{"party_id": 999}')],
  ["party_is_kept", "a party deleted", () => "delete from core.party"],
  [
    "merchant_external_id_is_well_formed",
    "an id of another kind",
    copyOf("merchant", '{"merchant_id": 999, "external_id": "mch"}'),
  ],
  ["merchant_tenant_id_external_id_key", "the id of another merchant", copyOf("merchant", '{"merchant_id": 999}')],
  ["merchant_is_kept", "a merchant deleted", () => "delete from core.merchant"],
  ["store_external_id_is_1_to_64_characters", "a store without a name", row("store", "external_id = ''")],
  ["store_tenant_id_merchant_id_external_id_key", "the name of another store", row("store", "external_id = 'S1'")],
  [
    "terminal_external_id_is_1_to_64_characters",
    "a terminal with a long name",
    row("terminal", "external_id = repeat('x', 65)"),
  ],
  [
    "access_key_is_well_formed",
    "a key of another form",
    () => copy("credential", "access_key = 'ak_a'", `'{"access_key": "key", "credential_id": 999}'`),
  ],
  [
    "credential_access_key_key",
    "the key of another credential",
    () => copy("credential", "access_key = 'ak_a'", `'{"credential_id": 999}'`),
  ],
  [
    "party_is_given_exactly_in_variant_b",
    "a credential of B without a party",
    () =>
      copy(
        "credential",
        "access_key = 'ak_pos'",
        `'{"party_id": null, "access_key": "ak_other", "credential_id": 999}'`,
      ),
  ],
  [
    "party_is_given_exactly_in_variant_b",
    "a credential of A with a party",
    () =>
      copy(
        "credential",
        "access_key = 'ak_a'",
        `jsonb_build_object('party_id', (select party_id from core.party where external_id = 'pty_a'), 'access_key', 'ak_other', 'credential_id', 999)`,
      ),
  ],
  [
    "credential_stands_for_one_caller",
    "the party of a credential changed",
    row(
      "credential",
      "party_id = (select max(p.party_id) from core.party p where p.tenant_id = credential.tenant_id) + 1",
      "access_key = 'ak_pos'",
    ),
  ],
  [
    "credential_stands_for_one_caller",
    "a revoked credential brought back",
    () =>
      "update core.credential set revoked_at = now() where access_key = 'ak_pos'; update core.credential set revoked_at = null where access_key = 'ak_pos'",
  ],
  ["credential_is_kept", "a credential deleted", () => "delete from core.credential"],
  ["credential_is_kept", "all credentials truncated", () => "truncate core.credential"],
  ["url_is_http", "a webhook that is no URL", row("webhook", "url = 'ftp://example.com'")],
  [
    "previous_secret_has_its_time",
    "an old secret without a time",
    row("webhook", "sealed_previous_secret = '\\x00', rotated_at = null"),
  ],
  // the gate, and facts
  [
    "outcome_is_final",
    "an answer that is none",
    () => copy("request", "true", `'{"request_id": "new", "idempotency_key": null, "http_status": 503}'`),
  ],
  [
    "client_key_is_1_to_128_characters",
    "a request without an id",
    () => copy("request", "true", `'{"request_id": "", "idempotency_key": null}'`),
  ],
  [
    "client_key_is_1_to_128_characters",
    "a key that is too long",
    () => copy("request", "true", `jsonb_build_object('request_id', 'new', 'idempotency_key', repeat('x', 129))`),
  ],
  [
    "idempotency_key_is_used_once",
    "a key used twice",
    () => copy("request", "idempotency_key is not null", `'{"request_id": "new"}'`),
  ],
  ["request_is_final", "an answer changed", row("request", "response = '{}'")],
  ["request_is_final", "all answers truncated", () => "truncate core.request"],
  ["audit_is_immutable", "an audit changed", row("audit", "login = 'nobody'")],
  ["audit_is_immutable", "an audit deleted", () => "delete from core.audit"],
  [
    "code_version_is_current_or_before",
    "one version that is both",
    () => "insert into core.code_version (is_current, sha256) select false, sha256 from core.code_version",
  ],
  ["currency_is_iso_4217", "a currency in small letters", () => "insert into core.currency values ('eur', 2)"],
  ["currency_is_immutable", "cents become mills", row("currency", "decimals = 3")],
  ["decimals_are_0_to_4", "a currency with five decimals", () => "insert into core.currency values ('QQQ', 5)"],
];
