// Attempts on events, feeds and deliveries, and on the postings and statements that the worker writes.
import { insertCopy, insertEvent, redeemLock, together, update, updateCoupon, type Attempts } from "./statements.ts";

const insertEventCopy = (where: string, changes: Record<string, string>) =>
  insertCopy("event", where, { event_id: "gen_random_uuid()", event_seq: "nextval('core.event_seq')", ...changes });
// An event of a coupon that expires in the same transaction.
const insertExpired = (changes: Record<string, string>) =>
  together(updateCoupon("past", "status = 'EXPIRED'"), insertEvent("past", changes));
// The first number that was not drawn.
const nextNumber = "pg_sequence_last_value('core.event_seq') + 1";
// The number of an event. It is not sequenced yet: the entry :unposted.
const unposted = "(select event_seq from core.ledger_entry where entry_id = :unposted)";
// A step that takes the events up to the newest.
const takeStep = `update core.sequencer
  set step = step + 1, after_seq = high_seq, late_seqs = '{}', high_seq = (select max(event_seq) from rules.event)`;
const takeNothing = "update core.sequencer set step = step + 1, after_seq = high_seq, late_seqs = '{}'";
const keepAsGap = `insert into core.event_gap select ${unposted}, '1'`;
const nextPosition = "(select last_position + 1 from core.feed where tenant_id = :ten_a)";
const insertFeedPage = (changes: Record<string, string>) => insertCopy("feed_page", "tenant_id = :ten_a", changes);
const insertNextPage = (events: string) => insertFeedPage({ first_position: nextPosition, event_seqs: events });
const insertPostings = (...pages: [distributor: string, day: string, number: number, event: string][]) =>
  `insert into core.posting_page values ${pages
    .map(([distributor, ...page]) => `(:ten_a, ${distributor}, ${page.slice(0, 2).join(", ")}, array[${page[2]}])`)
    .join(", ")}`;

const nextChange = `(select max(p.first_position + cardinality(p.event_seqs)) from core.merchant_page p
  where p.merchant_id = (o.x).merchant_id)`;
const insertChanges = (events: string, more: Record<string, string> = {}) =>
  insertCopy("merchant_page", "tenant_id = :ten_a", { first_position: nextChange, event_seqs: events, ...more });

const eventAttempts: Attempts = {
  event_is_for_whom_it_concerns: [
    insertExpired({ party_id: "2147483647" }),
    insertExpired({ recorded_at: "now() + interval '2 days'" }),
    insertExpired({ coupon_id: "gen_random_uuid()" }),
    insertEvent("issued", { event_type: "'coupon.voided'" }),
    insertEvent("voided"),
    insertEventCopy("batch_id is not null", { batch_id: "2147483647" }),
    insertEventCopy("business_date is not null", { party_id: "2147483647" }),
  ],
  event_is_in_one_table: [insertExpired({ event_seq: unposted }), insertExpired({ event_id: ":unposted::uuid" })],
  coupon_is_voided_once: [insertEvent("voided", { event_type: "'coupon.voided'" })],
  event_number_is_drawn: [insertExpired({ event_seq: nextNumber }), redeemLock("locked", { seq: nextNumber })],
  event_number_is_not_passed: [insertExpired({ event_seq: "0" }), redeemLock("locked", { seq: "0" })],
  event_event_seq_key: [insertEvent("issued", { event_seq: "(select min(event_seq) from core.event)" })],
  event_is_of_its_type: [
    insertEvent("issued", { batch_id: "1" }),
    insertEventCopy("batch_id is not null", { event_type: "'coupon.expired'" }),
    insertEvent("issued", { event_type: "'coupon.redeemed'" }),
    insertEventCopy("true", { event_type: "'coupon.sold'" }),
  ],
};

const feedAttempts: Attempts = {
  gap_is_above_the_sequencer: ["insert into core.event_gap select high_seq, '1' from core.sequencer"],
  event_gap_is_immutable: [update("event_gap", "event_seq = 1"), update("event_gap", "drawn_before = '2'")],
  time_zone_is_known: [update("party", "time_zone = 'Mars/Base'")],
  work_is_known: [update("stuck_work", "work = 'else'")],
  subject_is_at_most_64_characters: [update("stuck_work", "subject = repeat('x', 65)")],
  invariant_is_at_most_63_characters: [update("invariant_check", "invariant = repeat('x', 64)")],
  broken_invariant_has_an_example: [
    update("invariant_check", "broken_rows = 1, example = null"),
    update("invariant_check", "broken_rows = 0, example = 'x'"),
  ],
  table_name_is_at_most_63_characters: [update("prune_walk", "table_name = repeat('x', 64)")],
  next_block_is_not_negative: [update("prune_walk", "next_block = -1")],
  reason_is_at_most_100_characters: [
    `insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, duration_ms, attempted_at, reason)
     values (1, 1, gen_random_uuid(), 1, 1, now(), repeat('x', 101))`,
  ],
  reason_is_at_most_500_characters: [update("stuck_work", "reason = repeat('x', 501)")],
  gap_waits_for_a_transaction_or_a_party: [
    "insert into core.event_gap (event_seq) select high_seq + 1 from core.sequencer",
  ],
  sequencer_goes_forward: [
    update("sequencer", "high_seq = 0"),
    update("sequencer", "step = step + 1, after_seq = high_seq + 5, high_seq = high_seq + 9"),
    update("sequencer", "after_seq = high_seq, high_seq = high_seq + 9"),
    update("sequencer", "step = step + 1, after_seq = high_seq, high_seq = high_seq - 1"),
    update("sequencer", "step = step + 1, after_seq = high_seq, late_seqs = array[1]"),
  ],
  feed_goes_forward: [
    update("feed", "last_position = 0"),
    update("feed", "last_position = last_position + 1"),
    update("feed", "skipped_count = last_position + 1"),
    update("feed", "last_step = 0"),
    update("feed", "last_step = (select step + 1 from core.sequencer)"),
    insertCopy("feed", "true", {
      party_id: "2147483647",
      last_position: "0",
      last_step: "(select step + 1 from core.sequencer)",
    }),
    insertCopy("feed", "true", { party_id: "2147483647" }),
    update("feed", "party_id = 2147483647"),
  ],
  event_is_of_its_feed: [
    insertFeedPage({ party_id: "2147483647" }),
    insertNextPage("array[888888888]"),
    insertNextPage("(select array[event_seq] from rules.event where batch_id is not null limit 1)"),
  ],
  event_is_sequenced_once: [
    together(takeNothing, insertNextPage("((o.x).event_seqs)[1:1]")),
    insertNextPage(`array[${unposted}]`),
    together(keepAsGap, takeStep, insertNextPage(`array[${unposted}]`)),
  ],
  page_continues_its_feed: [
    insertNextPage("(o.x).event_seqs"),
    together(takeStep, insertFeedPage({ first_position: `1 + ${nextPosition}`, event_seqs: `array[${unposted}]` })),
  ],
  page_has_1_to_1000_events: [
    insertNextPage("'{}'::bigint[]"),
    insertNextPage("array(select generate_series(1, 1001))"),
  ],
  events_of_a_page_ascend: [
    insertNextPage("((o.x).event_seqs)[1:1] || (o.x).event_seqs"),
    insertNextPage("array[2, 1]"),
    insertNextPage("array[1, null]"),
  ],
  feed_is_pruned_from_its_front: [
    together(
      takeStep,
      insertNextPage(`array[${unposted}]`),
      `delete from core.feed_page where event_seqs = array[${unposted}]`,
    ),
  ],
  new_page_is_kept: ["delete from core.feed_page"],
  last_position_is_not_negative: [
    insertCopy("feed", "true", { party_id: "2147483647", last_position: "-1", skipped_count: "-1" }),
  ],
  change_is_of_its_merchant: [insertChanges("array[888888888]")],
  change_is_listed_once: [
    together(takeNothing, insertChanges("((o.x).event_seqs)[1:1]")),
    insertChanges(`array[${unposted}]`),
  ],
  page_continues_its_merchant: [
    insertChanges("(o.x).event_seqs"),
    together(takeStep, insertChanges(`array[${unposted}]`, { first_position: `1 + ${nextChange}` })),
    together(takeStep, insertChanges(`array[${unposted}]`, { recorded_from: "'2020-01-01'" })),
  ],
  page_is_recorded_forward: [insertChanges("(o.x).event_seqs", { recorded_from: "'infinity'" })],
  sequencer_has_one_row: ["insert into core.sequencer (is_only) values (false)"],
};

const statementAttempts: Attempts = {
  posting_is_of_its_distributor: [
    insertPostings(["2147483647", "'2030-01-01'", 1, unposted]),
    insertPostings([":distributor", "'2030-01-01'", 1, "888888888"]),
  ],
  closed_day_is_closed: [insertPostings([":distributor", ":day", 999, unposted])],
  entry_is_posted_once: [
    insertCopy("posting_page", "true", { business_date: ":day::date + 1" }),
    together(takeNothing, insertCopy("posting_page", "true", { business_date: ":day::date + 1" })),
    together(
      takeStep,
      insertPostings([":distributor", "'2030-01-01'", 1, unposted], [":distributor", "'2030-01-02'", 1, unposted]),
    ),
    insertPostings([":distributor", "'2030-01-01'", 1, unposted]),
  ],
  page_continues_its_day: [
    together(takeStep, insertPostings([":distributor", "'2030-01-01'", 0, unposted])),
    together(takeStep, insertPostings([":distributor", "'2030-01-01'", 2, unposted])),
  ],
  ready_statement_never_changes: [update("statement", "detail_sha256 = 'x'", "ready_at is not null")],
  files_are_described_when_ready: [update("statement", "ready_at = now()", "ready_at is null")],
  line_has_entries: [
    insertCopy("statement_line", "true", { number: "999", redemption_count: "0", reversal_count: "0" }),
  ],
  store_line_has_entries: [
    insertCopy("store_line", "true", { number: "999", redemption_count: "0", reversal_count: "0" }),
  ],
  batch_line_has_entries: [
    insertCopy("batch_line", "true", { batch_id: "0", redemption_count: "0", reversal_count: "0" }),
  ],
  day_is_closed_before_the_next_opens: [
    update("ledger_book", "open_on = open_on + 1", "party_id = :distributor"),
    together(
      // Four days ahead, so that both days are over.
      update("party", "time_zone = '<X>-100'", "party_id = :distributor"),
      update("ledger_book", "open_on = open_on + 2", "party_id = :distributor"),
      insertCopy("statement", "business_date = :day", { business_date: "(o.x).business_date + 1" }),
    ),
  ],
  open_day_has_no_statement: [
    insertCopy("statement", "business_date = :day", { business_date: "(o.x).business_date + 1" }),
    insertCopy("statement", "business_date = :day", { business_date: "(o.x).business_date + 9" }),
  ],
  day_is_over_before_it_is_closed: [
    together(
      update("ledger_book", "open_on = current_date + 9", "party_id = :distributor"),
      insertCopy("statement", "business_date = :day", { business_date: "current_date + 2" }),
    ),
  ],
  book_begins_within_a_week: [insertCopy("ledger_book", "true", { open_on: "current_date + 9" })],
  open_day_goes_forward: [
    update("ledger_book", "party_id = 2147483647"),
    update("ledger_book", "open_on = open_on - 1"),
    update("ledger_book", "last_step = last_step - 1"),
    update("ledger_book", "last_step = (select step + 1 from core.sequencer)"),
    insertCopy("ledger_book", "true", { party_id: "2147483647", last_step: "(select step + 1 from core.sequencer)" }),
  ],
};

const insertOtherWebhook = together(
  insertCopy("party", "party_id = :distributor", { party_id: "2147483647", external_id: "'pty_other'" }),
  insertCopy("webhook", "true", { party_id: "2147483647" }),
);
const deleteAfterAttempt = (event: string, status: number, at: string) =>
  together(
    `insert into core.delivery_attempt (tenant_id, party_id, event_id, attempt, http_status, duration_ms, attempted_at)
     select tenant_id, party_id, ${event}, 1, ${status}, 1, ${at} from core.delivery`,
    "delete from core.delivery",
  );

const deliveryAttempts: Attempts = {
  delivery_is_of_an_event: [
    insertCopy("delivery", "true", { event_id: "gen_random_uuid()" }),
    insertCopy("delivery", "true", { event_id: ":unposted" }),
    insertCopy("delivery", "party_id = (select distributor_id from core.ledger_entry where entry_id = :unposted)", {
      event_id: ":unposted",
      event_seq: unposted,
      coupon_id: "gen_random_uuid()",
    }),
    insertCopy("delivery", "true", {
      event_id: "(select e.event_id from core.event e where e.business_date is not null)",
    }),
    together(
      insertOtherWebhook,
      insertCopy("delivery", "event_id in (select entry_id from core.ledger_entry)", { party_id: "2147483647" }),
    ),
    together(
      insertOtherWebhook,
      insertCopy("delivery", "event_id in (select e.event_id from core.event e)", { party_id: "2147483647" }),
    ),
  ],
  delivery_is_kept_until_accepted: [
    "delete from core.delivery",
    deleteAfterAttempt("event_id", 500, "now()"),
    deleteAfterAttempt("event_id", 200, "now() - interval '1 second'"),
    deleteAfterAttempt("gen_random_uuid()", 200, "now()"),
  ],
  event_types_are_known: [
    update("webhook", "event_types = '{}'"),
    update("webhook", "event_types = '{coupon.redeemed,coupon.minted}'"),
  ],
  attempt_count_is_0_to_10: [update("delivery", "attempt_count = 11")],
  test_delivery_tenant_id_party_id_fkey: [insertCopy("test_delivery", "true", { party_id: "2147483647" })],
  test_event_type_is_known: [update("test_delivery", "event_type = 'x'")],
};

export const attemptsOnEvents = [eventAttempts, feedAttempts, statementAttempts, deliveryAttempts];
