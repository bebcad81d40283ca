// Guards of the sequencer, business days, leases and webhooks.
import { edit, type Sabotage } from "./sabotage.ts";

export const workerGuards: Sabotage[] = [
  {
    name: "sequencer order",
    edits: [edit("db/code/rules/feed/append_to_feeds.sql", "order by e.event_seq),", "order by e.event_seq desc),")],
    tests: ["test/worker/tasks/sequence.test.ts", "test/http/events.test.ts"],
  },
  {
    name: "events that commit late",
    edits: [
      edit(
        "db/code/rules/feed/update_event_gaps.sql",
        "select unnest(p_found)) m;",
        "select unnest(p_found)) m\n  where false;",
      ),
    ],
    tests: ["test/worker/tasks/sequence.test.ts"],
  },
  {
    name: "one sequencer at a time",
    behind: "unique positions, as an error",
    edits: [
      edit(
        "db/code/rules/feed/try_sequencer_lock.sql",
        "return pg_try_advisory_xact_lock(hashtextextended('sequencer', 0));",
        "return true;",
      ),
    ],
    tests: ["test/worker/tasks/sequence.test.ts"],
  },
  {
    name: "a closed business day gets no entry",
    behind: "closed_day_is_closed, which stops the sequencer",
    edits: [
      edit(
        "db/code/rules/statement/post_entries.sql",
        "greatest(rules.compute_local_date(l.recorded_at, p.time_zone), b.open_on)",
        "rules.compute_local_date(l.recorded_at, p.time_zone)",
      ),
    ],
    tests: ["test/worker/tasks/sequence-steps.test.ts"],
  },
  {
    name: "a business day closes after its events are sequenced",
    edits: [edit("db/code/jobs/close_days.sql", "w.recorded_at < rules.compute_settled_time(v_now))", "false)")],
    tests: ["test/worker/tasks/business-days.test.ts", "test/worker/tasks/close.test.ts"],
  },
  {
    name: "a download names one of several distributors",
    edits: [
      edit(
        "db/code/api/get_reconciliation.sql",
        "and rules.has_several_distributors(p_call.tenant_id, v_date)",
        "and false",
      ),
    ],
    tests: ["test/http/reconciliations.test.ts", "test/worker/tasks/several-distributors.test.ts"],
  },
  {
    name: "the address of a closed statement stays when a distributor joins",
    edits: [
      edit(
        "db/code/rules/statement/has_several_distributors.sql",
        "coalesce(bool_or(s.is_one_of_several), count(*) > 1)",
        "count(*) > 1",
      ),
    ],
    tests: ["test/worker/tasks/several-distributors.test.ts"],
  },
  {
    name: "a distributor that joins starts after the closed dates",
    edits: [
      edit("db/code/rules/statement/open_books.sql", "(select max(s.business_date) + 1\n", "(select null::date\n"),
    ],
    tests: ["test/worker/tasks/several-distributors.test.ts"],
  },
  {
    name: "small tables are analyzed",
    edits: [
      edit(
        "db/code/jobs/analyze_grown_tables.sql",
        "(pg_stat_get_live_tuples(c.oid) > 2 * greatest(c.reltuples, 0)\n           or pg_stat",
        "(pg_stat",
      ),
    ],
    tests: ["test/db/grown-tables.test.ts"],
  },
  {
    name: "lease of a batch",
    behind: "mint_chunk, which takes the next numbers only",
    edits: [
      edit(
        "db/code/jobs/claim_batch.sql",
        "and (b.mint_lease_until is null\n         or b.mint_lease_until <= clock_timestamp()\n" +
          "         or b.mint_holder = p_holder)",
        "",
      ),
    ],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "numbers of a minted chunk",
    behind: "number_is_unique_in_batch, as a collision that never ends",
    edits: [edit("db/code/jobs/mint_chunk.sql", "p_first_number <> v_batch.minted_count + 1 or ", "")],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "lease of a subscriber",
    edits: [
      edit(
        "db/code/jobs/claim_deliveries.sql",
        "and (w.lease_until is null or w.lease_until <= clock_timestamp() or w.holder = p_holder)",
        "",
      ),
    ],
    tests: ["test/worker/tasks/deliver-lease.test.ts"],
  },
  {
    name: "private addresses of webhooks",
    edits: [edit("src/worker/address-rule.ts", "if (bad !== undefined) callback(", "if (bad === found[-1]) callback(")],
    tests: ["test/worker/address-rule.test.ts", "test/worker/webhook-sender.test.ts"],
  },
];
