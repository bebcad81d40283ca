// Guards in the tables of the sequencer: one position for each event, and one business day for each ledger entry.
import { edit, guard, type Sabotage } from "./sabotage.ts";

const events = "db/migrations/007-events.sql";
const ledger = "db/migrations/008-ledger.sql";
const sequencer = "db/migrations/011-sequencer.sql";
const feeds = "db/migrations/012-feeds.sql";
const statements = "db/migrations/013-statements.sql";
const deliveries = "db/migrations/014-deliveries.sql";

export const sequencerGuards: Sabotage[] = [
  guard("an event has no number of a ledger entry", events, "l.event_seq = n.event_seq)\n     or", "false)\n     or"),
  guard("an event has a drawn number", events, "where n.event_seq > v_last;", "where false;"),
  guard("a ledger entry has a drawn number", ledger, "     or n.event_seq > v_last\n", ""),
  guard("an event has no ID of a ledger entry", events, "and l.entry_id = n.event_id);", "and false);"),
  guard("a number that was passed is no gap", sequencer, "n.event_seq <= v_high", "false"),
  {
    name: "a gap waits for a step",
    edits: [edit(sequencer, "from core.sequencer s for no key update;", "from core.sequencer s;")],
    tests: ["test/worker/tasks/sequence-steps.test.ts"],
  },
  guard("a step follows the step before", sequencer, "if new.step <> old.step + 1\n     or", "if"),
  guard("a step begins at the last high number", sequencer, "     or new.after_seq <> old.high_seq\n", ""),
  guard("the high number never falls", sequencer, "     or new.high_seq < old.high_seq\n", ""),
  guard("a late number was a gap", sequencer, "     or v_taken <> cardinality(new.late_seqs)\n", ""),
  {
    name: "late events in the order of their positions",
    edits: [
      edit(
        "db/code/rules/feed/read_feed.sql",
        "if v_seqs[v_first::int] < event_seqs[cardinality(event_seqs)] then",
        "if false then",
      ),
    ],
    tests: ["test/worker/tasks/sequence-steps.test.ts"],
  },
  {
    name: "a late number is taken once",
    edits: [edit(sequencer, "delete from core.event_gap g where", "perform from core.event_gap g where")],
    tests: ["test/worker/tasks/sequence-steps.test.ts"],
  },
  guard(
    "a number on a page is not kept as a gap",
    sequencer,
    "or exists (select from core.event_gap g where",
    "or exists (select from core.event_gap g where false and",
  ),
  guard("a number on a page is of this step", sequencer, "else x.event_seq <> all (s.late_seqs)", "else false"),
  guard("events of a page ascend", sequencer, "if (v_number > v_before) is not true then", "if false then"),
  guard("a page has the events of its feed", feeds, "e.coupon_id is not null\n           and e.ten", "e.ten"),
  guard("an event has one position", feeds, "elsif v_is.stray_seq is not null then", "elsif false then"),
  guard("a page begins after its feed", feeds, "\n    and f.last_position = n.first_position - 1", ""),
  guard("a feed gets one page in a step", feeds, "\n    and f.last_step < v_is.step;", ";"),
  guard("a feed begins without events", feeds, "then new.last_position = new.skipped_count", "then true"),
  guard("a feed is moved by a page", feeds, "\n                  and p.first_position = old.last_position + 1))", "))"),
  guard("a feed is pruned from its front", feeds, "p.first_position < o.last_position)\n", "false)\n"),
  guard("a posting is of its distributor", statements, "if v_is.foreign_seq is not null then", "if false then"),
  guard("a closed day gets no postings", statements, "elsif v_is.is_closed then", "elsif false then"),
  guard(
    "a page begins after the last entry of its day",
    statements,
    "elsif v_is.is_misnumbered then",
    "elsif false then",
  ),
  guard("an entry is of this step", statements, "if v_is.stray_seq is not null\n     or v_books", "if v_books"),
  guard("a distributor is posted once in a step", statements, " and b.last_step < s.step;", ";"),
  guard("an entry is on one day of a step", statements, "having count(*) > 1)", "having count(*) > 2)"),
  guard("the step of a book never falls", statements, "     or new.last_step < old.last_step\n", ""),
  guard(
    "no book is ahead of the sequencer",
    statements,
    "or new.last_step > (select s.step from core.sequencer s)",
    "",
  ),
  guard(
    "no feed is ahead of the sequencer",
    feeds,
    "if new.last_step <= (select s.step from core.sequencer s)",
    "if true",
  ),
  {
    name: "a posting waits for the close of its day",
    edits: [
      edit(statements, "b.last_step < s.step;", "b.last_step < s.step and false;"),
      edit(statements, "     or v_books <> v_is.distributors\n", ""),
    ],
    tests: ["test/worker/tasks/close.test.ts"],
  },
  {
    name: "a business day waits for the oldest of many events",
    edits: [
      edit("db/code/rules/feed/has_unsequenced_event.sql", "order by e.event_seq\n", "order by e.event_seq desc\n"),
    ],
    tests: ["test/worker/tasks/close.test.ts"],
  },
  {
    name: "a business day waits for events that commit late",
    edits: [
      edit(
        "db/code/rules/feed/has_unsequenced_event.sql",
        "e.event_seq = any (array(\n",
        "false and e.event_seq = any (array(\n",
      ),
    ],
    tests: ["test/worker/tasks/event-gaps.test.ts"],
  },
  guard("a delivery has the number of its ledger entry", deliveries, "\n      and l.event_seq = n.event_seq", ""),
  guard("a delivery has the number of its event", deliveries, "\n      and e.event_seq = n.event_seq", ""),
  guard("a ledger entry is delivered to its distributor", deliveries, "\n      and l.distributor_id = n.party_id", ""),
  guard("an event is delivered to its party", deliveries, "\n      and e.party_id = n.party_id);", ");"),
];
