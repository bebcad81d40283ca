// Attempts on events and feeds, and on the postings, statements and deliveries that the worker writes.
import {
  insertCopy,
  insertEvent,
  insertReversal,
  insertReversalEvent,
  together,
  update,
  type Attempts,
} from "./statements.ts";

const insertEventCopy = (where: string, changes: Record<string, string>) =>
  insertCopy("event", where, { event_id: "gen_random_uuid()", event_seq: "999999", ...changes });
const insertFeedEvent = (changes: Record<string, string>) => insertCopy("feed_event", "true", changes);
const insertPosting = (distributor: string, day: string, number: number, entry: string) =>
  `insert into core.posting values (:ten_a, ${distributor}, ${day}, ${number}, ${entry})`;

export const eventAttempts: Attempts = {
  event_is_for_whom_it_concerns: {
    "an event for another party": insertEvent("locked", { party: "2147483647" }),
    "an event of another coupon's redemption": insertEvent("locked", { coupon: ":issued::uuid" }),
    "an event of another coupon's reversal": together(
      insertReversal("redeemed"),
      insertReversalEvent("redeemed", { coupon: ":issued::uuid" }),
    ),
    "an event of an unknown coupon": insertEvent("locked", { coupon: "gen_random_uuid()" }),
    "an event of an unknown batch": insertEventCopy("batch_id is not null", { batch_id: "2147483647" }),
    "an event of a business day for an unknown party": insertEventCopy("business_date is not null", {
      party_id: "2147483647",
    }),
    "a second event for one redemption": insertEventCopy("event_type = 'coupon.redeemed'", {}),
    "a reversed event with the ID of a redemption": insertEvent("locked", { type: "coupon.reversed" }),
  },
  event_is_of_its_type: {
    "an event of both a batch and a coupon": insertEventCopy("coupon_id is not null", { batch_id: "1" }),
    "a redeemed event of a batch": insertEventCopy("batch_id is not null", { event_type: "'coupon.redeemed'" }),
    "an unknown type of event": insertEventCopy("true", { event_type: "'coupon.sold'" }),
  },
  event_is_immutable: {
    "an event changed": update("event", "occurred_at = now()"),
    "events deleted": "delete from core.event",
  },
  time_is_finite: { "an event recorded at infinity": insertEvent("locked", { recordedAt: "'infinity'" }) },
};

export const feedAttempts: Attempts = {
  feed_goes_forward: {
    "positions used again": update("feed", "last_position = 0"),
    "a feed given to another party": update("feed", "party_id = 2147483647"),
  },
  feed_is_kept: { "feeds deleted": "delete from core.feed" },
  event_is_of_its_feed: {
    "an event in an unknown feed": insertFeedEvent({ event_id: "gen_random_uuid()", party_id: "2147483647" }),
    "an unknown event in a feed": insertFeedEvent({ event_id: "gen_random_uuid()", position: "999999" }),
    "a batch's event in a feed": insertFeedEvent({
      position: "999999",
      event_id: "(select event_id from core.event where batch_id is not null limit 1)",
    }),
  },
  feed_event_is_immutable: { "an event changed in its feed": update("feed_event", "body = '{}'") },
  event_is_sequenced_once: { "an event twice in a feed": insertFeedEvent({ position: "999" }) },
  position_is_positive: { "position 0": insertFeedEvent({ position: "0" }) },
  skipped_positions_are_within_the_feed: {
    "more positions skipped than the feed has": update("feed", "skipped_count = last_position + 1"),
  },
  last_position_is_not_negative: {
    "a negative last position": insertCopy("feed", "true", { party_id: "2147483647", last_position: "-1" }),
  },
  sequencer_has_one_row: { "a second sequencer": "insert into core.sequencer (is_only) values (false)" },
  attempt_count_is_0_to_10: { "an eleventh attempt": update("delivery", "attempt_count = 11") },
  test_delivery_tenant_id_party_id_fkey: {
    "a test for a party without a webhook": insertCopy("test_delivery", "true", { party_id: "2147483647" }),
  },
  test_event_type_is_known: { "a test of a type that does not exist": update("test_delivery", "event_type = 'x'") },
};

export const statementAttempts: Attempts = {
  posting_is_of_its_distributor: {
    "an entry on the books of another distributor": insertPosting("2147483647", "'2030-01-01'", 1, ":unposted"),
    "an unknown entry on the books": insertPosting(":distributor", "'2030-01-01'", 1, "gen_random_uuid()"),
  },
  closed_day_is_closed: {
    "an entry for a closed day": insertPosting(":distributor", ":day", 999, ":unposted"),
  },
  entry_is_posted_once: { "an entry on two days": insertCopy("posting", "true", { business_date: ":day::date + 1" }) },
  posting_number_is_positive: { "number 0": insertCopy("posting", "true", { number: "0" }) },
  posting_is_immutable: {
    "an entry moved to another day": update("posting", "business_date = business_date + 1"),
    "postings deleted": "delete from core.posting",
  },
  ready_statement_never_changes: {
    "another number of entries": update("statement", "entry_count = 99"),
    "another address of its files": update("statement", "is_one_of_several = true"),
    "other files than before": update("statement", "detail_sha256 = 'x'", "ready_at is not null"),
  },
  files_are_described_when_ready: {
    "ready without files": update("statement", "ready_at = now()", "ready_at is null"),
  },
  statement_is_kept: { "a statement deleted": "delete from core.statement" },
  statement_line_is_immutable: { "a line of a summary changed": update("statement_line", "redemption_minor = 0") },
  line_has_entries: {
    "a line without entries": insertCopy("statement_line", "true", {
      number: "999",
      redemption_count: "0",
      reversal_count: "0",
    }),
  },
  ledger_book_is_kept: { "books deleted": "delete from core.ledger_book" },
  open_day_goes_forward: {
    "books given to another party": update("ledger_book", "party_id = 2147483647"),
    "a closed day opened again": update("ledger_book", "open_on = open_on - 1"),
  },
};
