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

const eventAttempts: Attempts = {
  event_is_for_whom_it_concerns: {
    "an event for another party": insertExpired({ party_id: "2147483647" }),
    "an event recorded in two days": insertExpired({ recorded_at: "now() + interval '2 days'" }),
    "an event of an unknown coupon": insertExpired({ coupon_id: "gen_random_uuid()" }),
    "a voided event of a coupon that is ISSUED": insertEvent("issued", { event_type: "'coupon.voided'" }),
    "an expired event of a coupon that is VOIDED": insertEvent("voided"),
    "an event of an unknown batch": insertEventCopy("batch_id is not null", { batch_id: "2147483647" }),
    "an event of a business day for an unknown party": insertEventCopy("business_date is not null", {
      party_id: "2147483647",
    }),
  },
  event_is_in_one_table: {
    "an event with the number of a ledger entry": insertExpired({ event_seq: unposted }),
    "an event with the ID of a ledger entry": insertExpired({ event_id: ":unposted::uuid" }),
  },
  coupon_is_voided_once: { "a second event": insertEvent("voided", { event_type: "'coupon.voided'" }) },
  event_number_is_drawn: {
    "an event with the next number": insertExpired({ event_seq: nextNumber }),
    "a ledger entry with the next number": redeemLock("locked", { seq: nextNumber }),
  },
  event_event_seq_key: {
    "a number twice": insertEvent("issued", { event_seq: "(select min(event_seq) from core.event)" }),
  },
  event_is_of_its_type: {
    "an event of both a batch and a coupon": insertEvent("issued", { batch_id: "1" }),
    "an expired event of a batch": insertEventCopy("batch_id is not null", { event_type: "'coupon.expired'" }),
    "a redemption that is no ledger entry": insertEvent("issued", { event_type: "'coupon.redeemed'" }),
    "an unknown type of event": insertEventCopy("true", { event_type: "'coupon.sold'" }),
  },
  time_is_finite: {
    "an event recorded at infinity": insertEvent("issued", { recorded_at: "timestamptz 'infinity'" }),
    "a delivery that is never tried again": update("delivery", "next_attempt_at = 'infinity'"),
  },
};

const feedAttempts: Attempts = {
  gap_is_above_the_sequencer: { "a lower one": "insert into core.event_gap select high_seq, '1' from core.sequencer" },
  event_gap_is_immutable: {
    "another number that is missing": update("event_gap", "event_seq = 1"),
    "a number that waits for no transaction and no party": update("event_gap", "drawn_before = '2'"),
  },
  time_zone_is_known: { "a time zone that the server does not know": update("party", "time_zone = 'Mars/Base'") },
  work_is_known: { "other work that is stuck": update("stuck_work", "work = 'else'") },
  subject_is_at_most_64_characters: { "a long subject": update("stuck_work", "subject = repeat('x', 65)") },
  reason_is_at_most_500_characters: { "a long reason": update("stuck_work", "reason = repeat('x', 501)") },
  gap_waits_for_a_transaction_or_a_party: {
    "a number that waits for nothing": "insert into core.event_gap (event_seq) select high_seq + 1 from core.sequencer",
  },
  sequencer_goes_forward: {
    "numbers taken again": update("sequencer", "high_seq = 0"),
    "numbers left out": update("sequencer", "step = step + 1, after_seq = high_seq + 5, high_seq = high_seq + 9"),
    "a step taken again": update("sequencer", "after_seq = high_seq, high_seq = high_seq + 9"),
    "a step back": update("sequencer", "step = step + 1, after_seq = high_seq, high_seq = high_seq - 1"),
    "a late number": update("sequencer", "step = step + 1, after_seq = high_seq, late_seqs = array[1]"),
  },
  feed_goes_forward: {
    "positions used again": update("feed", "last_position = 0"),
    "positions without a page": update("feed", "last_position = last_position + 1"),
    "more positions skipped than the feed has": update("feed", "skipped_count = last_position + 1"),
    "a page of the same step again": update("feed", "last_step = 0"),
    "a feed ahead of the sequencer": update("feed", "last_step = (select step + 1 from core.sequencer)"),
    "a feed that begins ahead of the sequencer": insertCopy("feed", "true", {
      party_id: "2147483647",
      last_position: "0",
      last_step: "(select step + 1 from core.sequencer)",
    }),
    "a feed that begins after events that it does not have": insertCopy("feed", "true", { party_id: "2147483647" }),
    "a feed given to another party": update("feed", "party_id = 2147483647"),
  },
  event_is_of_its_feed: {
    "an event in an unknown feed": insertFeedPage({ party_id: "2147483647" }),
    "an unknown event in a feed": insertNextPage("array[888888888]"),
    "a batch's event": insertNextPage("(select array[event_seq] from rules.event where batch_id is not null limit 1)"),
  },
  event_is_sequenced_once: {
    "an event of an earlier step": together(takeNothing, insertNextPage("((o.x).event_seqs)[1:1]")),
    "an event that no step took": insertNextPage(`array[${unposted}]`),
    "an event that is kept as missing": together(keepAsGap, takeStep, insertNextPage(`array[${unposted}]`)),
  },
  page_continues_its_feed: {
    "an event twice in a step": insertNextPage("(o.x).event_seqs"),
    "a page after a gap": together(
      takeStep,
      insertFeedPage({ first_position: `1 + ${nextPosition}`, event_seqs: `array[${unposted}]` }),
    ),
  },
  page_has_1_to_1000_events: {
    "a page without events": insertNextPage("'{}'::bigint[]"),
    "1,001 events on a page": insertNextPage("array(select generate_series(1, 1001))"),
  },
  events_of_a_page_ascend: {
    "an event twice on a page": insertNextPage("((o.x).event_seqs)[1:1] || (o.x).event_seqs"),
    "events of a page in another order": insertNextPage("array[2, 1]"),
    "a number that is null": insertNextPage("array[1, null]"),
  },
  feed_is_pruned_from_its_front: {
    "a page deleted before an older one": together(
      takeStep,
      insertNextPage(`array[${unposted}]`),
      `delete from core.feed_page where event_seqs = array[${unposted}]`,
    ),
  },
  new_page_is_kept: { "the pages of today deleted": "delete from core.feed_page" },
  last_position_is_not_negative: {
    "a negative last position": insertCopy("feed", "true", {
      party_id: "2147483647",
      last_position: "-1",
      skipped_count: "-1",
    }),
  },
  sequencer_has_one_row: { "a second sequencer": "insert into core.sequencer (is_only) values (false)" },
};

const statementAttempts: Attempts = {
  posting_is_of_its_distributor: {
    "an entry on the books of another distributor": insertPostings(["2147483647", "'2030-01-01'", 1, unposted]),
    "an unknown entry on the books": insertPostings([":distributor", "'2030-01-01'", 1, "888888888"]),
  },
  closed_day_is_closed: { "an entry for a closed day": insertPostings([":distributor", ":day", 999, unposted]) },
  entry_is_posted_once: {
    "an entry on two days": insertCopy("posting_page", "true", { business_date: ":day::date + 1" }),
    "in a later step": together(takeNothing, insertCopy("posting_page", "true", { business_date: ":day::date + 1" })),
    "an entry on two days of a step": together(
      takeStep,
      insertPostings([":distributor", "'2030-01-01'", 1, unposted], [":distributor", "'2030-01-02'", 1, unposted]),
    ),
    "an entry that no step took": insertPostings([":distributor", "'2030-01-01'", 1, unposted]),
  },
  page_continues_its_day: {
    "number 0": together(takeStep, insertPostings([":distributor", "'2030-01-01'", 0, unposted])),
    "number 2 without number 1": together(takeStep, insertPostings([":distributor", "'2030-01-01'", 2, unposted])),
  },
  ready_statement_never_changes: {
    "another number of entries": update("statement", "entry_count = 99"),
    "another address of its files": update("statement", "is_one_of_several = true"),
    "other files than before": update("statement", "detail_sha256 = 'x'", "ready_at is not null"),
  },
  files_are_described_when_ready: { "without files": update("statement", "ready_at = now()", "ready_at is null") },
  line_has_entries: {
    "a line without entries": insertCopy("statement_line", "true", {
      number: "999",
      redemption_count: "0",
      reversal_count: "0",
    }),
  },
  day_is_closed_before_the_next_opens: {
    "a day passed without a statement": update("ledger_book", "open_on = open_on + 1", "party_id = :distributor"),
    "a day passed beside a closed one": together(
      update("ledger_book", "open_on = open_on + 2", "party_id = :distributor"),
      insertCopy("statement", "business_date = :day", { business_date: "(o.x).business_date + 1" }),
    ),
  },
  open_day_has_no_statement: {
    "a statement of the open day": insertCopy("statement", "business_date = :day", {
      business_date: "(o.x).business_date + 1",
    }),
    "a statement of a later day": insertCopy("statement", "business_date = :day", {
      business_date: "(o.x).business_date + 9",
    }),
  },
  book_begins_within_a_week: { "in nine days": insertCopy("ledger_book", "true", { open_on: "current_date + 9" }) },
  open_day_goes_forward: {
    "books given to another party": update("ledger_book", "party_id = 2147483647"),
    "a closed day opened again": update("ledger_book", "open_on = open_on - 1"),
    "postings of a step again": update("ledger_book", "last_step = last_step - 1"),
    "a book ahead of the sequencer": update("ledger_book", "last_step = (select step + 1 from core.sequencer)"),
    "a book that begins ahead of the sequencer": insertCopy("ledger_book", "true", {
      party_id: "2147483647",
      last_step: "(select step + 1 from core.sequencer)",
    }),
  },
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
  delivery_is_of_an_event: {
    "a delivery of an unknown event": insertCopy("delivery", "true", { event_id: "gen_random_uuid()" }),
    "a delivery of a redemption with another number": insertCopy("delivery", "true", { event_id: ":unposted" }),
    "a delivery of a business day with another number": insertCopy("delivery", "true", {
      event_id: "(select e.event_id from core.event e where e.business_date is not null)",
    }),
    "a delivery of a redemption to another party": together(
      insertOtherWebhook,
      insertCopy("delivery", "event_id in (select entry_id from core.ledger_entry)", { party_id: "2147483647" }),
    ),
    "a delivery of a batch to another party": together(
      insertOtherWebhook,
      insertCopy("delivery", "event_id in (select e.event_id from core.event e)", { party_id: "2147483647" }),
    ),
  },
  delivery_is_kept_until_accepted: {
    "deliveries deleted": "delete from core.delivery",
    "deliveries deleted after a failure": deleteAfterAttempt("event_id", 500, "now()"),
    "deliveries deleted after an earlier success": deleteAfterAttempt("event_id", 200, "now() - interval '1 second'"),
    "deliveries deleted after a success of another event": deleteAfterAttempt("gen_random_uuid()", 200, "now()"),
  },
  attempt_count_is_0_to_10: { "an eleventh attempt": update("delivery", "attempt_count = 11") },
  test_delivery_tenant_id_party_id_fkey: {
    "no webhook": insertCopy("test_delivery", "true", { party_id: "2147483647" }),
  },
  test_event_type_is_known: { "a test of a type that does not exist": update("test_delivery", "event_type = 'x'") },
};

export const attemptsOnEvents = [eventAttempts, feedAttempts, statementAttempts, deliveryAttempts];
