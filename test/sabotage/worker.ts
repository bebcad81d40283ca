// Guards of the sequencer, business days, leases and webhooks.
import { edit, type Sabotage } from "./sabotage.ts";

export const workerGuards: Sabotage[] = [
  {
    name: "sequencer order",
    behind: "events_of_a_page_ascend, which stops the sequencer",
    edits: [edit("db/code/rules/feed/append_to_feeds.sql", "order by x.event_seq)", "order by x.event_seq desc)")],
    tests: ["test/worker/tasks/sequence.test.ts", "test/http/events.test.ts"],
  },
  {
    name: "events that commit late",
    edits: [
      edit(
        "db/code/rules/feed/claim_events.sql",
        "select e.event_seq from unnest(p_taken || p_waiting) e) m;",
        "select e.event_seq from unnest(p_taken || p_waiting) e) m\n    where false;",
      ),
    ],
    tests: ["test/worker/tasks/sequence.test.ts"],
  },
  {
    name: "late events beyond the limit of a step",
    edits: [
      edit("db/code/jobs/sequence_events.sql", "case when (select count(*) from late) < v_limit", "case when true"),
    ],
    tests: ["test/worker/tasks/sequence-steps.test.ts"],
  },
  {
    name: "missing numbers of a step that takes late events",
    edits: [edit("db/code/rules/feed/claim_events.sql", " - cardinality(v_late) then", " then")],
    tests: ["test/worker/tasks/sequence-steps.test.ts"],
  },
  {
    name: "one sequencer at a time",
    behind: "core.sequencer, as an error",
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
        "select greatest(b.open_on, case",
        "select greatest(null::date, case",
      ),
    ],
    tests: ["test/worker/tasks/sequence-steps.test.ts"],
  },
  {
    name: "a business day closes after its events are sequenced",
    edits: [edit("db/code/rules/feed/has_unsequenced_event.sql", "w.recorded_at < v_settled)", "false)")],
    tests: ["test/worker/tasks/close.test.ts"],
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
    tests: ["test/http/reconciliations.test.ts", "test/worker/tasks/statements.test.ts"],
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
    tests: ["test/worker/tasks/statements.test.ts"],
  },
  {
    name: "a distributor that joins starts after the closed dates",
    edits: [
      edit("db/code/rules/statement/open_books.sql", "(select max(s.business_date) + 1\n", "(select null::date\n"),
    ],
    tests: ["test/worker/tasks/statements.test.ts"],
  },
  {
    name: "statements are read from their postings on",
    edits: ["ledger_entry l", "redemption r", "coupon c", "batch b"].map((table) =>
      edit("db/code/rules/statement/posted_entry.sql", `left join core.${table}`, `join core.${table}`),
    ),
    tests: ["test/db/statement-plans.test.ts"],
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
    name: "a locked table is analyzed later",
    edits: [
      edit("db/code/jobs/analyze_grown_tables.sql", "continue when exists", "continue when false and exists"),
      edit("db/code/jobs/analyze_grown_tables.sql", "analyze (skip_locked) core.store;", "analyze core.store;"),
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
          "         or b.mint_holder = p_holder\n         or rules.is_worker_gone(b.mint_worker))\n    ",
        "",
      ),
    ],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "numbers of a minted chunk",
    behind: "number_is_unique_in_batch, as a collision that never ends",
    edits: [edit("db/code/jobs/mint_chunk.sql", "     or p_first_number <> v_batch.minted_count + 1\n", "")],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "lease of a subscriber",
    edits: [
      edit(
        "db/code/jobs/claim_deliveries.sql",
        "and (w.holder is null or w.lease_until <= clock_timestamp() or w.holder = p_holder\n" +
          "         or rules.is_worker_gone(w.worker))\n    ",
        "",
      ),
    ],
    tests: ["test/worker/tasks/webhook-lease.test.ts"],
  },
  {
    name: "a lease that has ended does not keep its subscriber waiting",
    edits: [edit("db/code/jobs/list_due_webhooks.sql", "w.holder is null", "w.lease_until is null")],
    tests: ["test/worker/tasks/webhook-lease.test.ts"],
  },
  {
    name: "a lease that has ended keeps no worker away",
    edits: [edit("db/code/jobs/claim_deliveries.sql", "w.holder is null", "w.lease_until is null")],
    tests: ["test/worker/tasks/webhook-lease.test.ts"],
  },
  {
    name: "an idle step gets no transaction ID",
    edits: [
      edit(
        "db/code/rules/feed/forget_gaps.sql",
        "coalesce(\n       pg_current_xact_id_if_assigned(), pg_snapshot_xmax(pg_current_snapshot()))",
        "pg_current_xact_id()",
      ),
    ],
    tests: ["test/worker/tasks/event-gaps.test.ts"],
  },
  {
    name: "gone worker: its batch is due",
    edits: [edit("db/code/jobs/claim_batch.sql", "\n         or rules.is_worker_gone(b.mint_worker))", ")")],
    tests: ["test/worker/tasks/gone-worker.test.ts"],
  },
  {
    name: "gone worker: its subscriber is due",
    edits: [edit("db/code/jobs/claim_deliveries.sql", "\n         or rules.is_worker_gone(w.worker))", ")")],
    tests: ["test/worker/tasks/gone-worker.test.ts"],
  },
  {
    name: "gone worker: it claims no batch",
    edits: [edit("db/code/jobs/claim_batch.sql", "    and not rules.is_worker_gone(p_worker)\n", "")],
    tests: ["test/worker/tasks/gone-worker.test.ts"],
  },
  {
    name: "gone worker: it claims no subscriber",
    edits: [edit("db/code/jobs/claim_deliveries.sql", "    and not rules.is_worker_gone(p_worker)\n", "")],
    tests: ["test/worker/tasks/gone-worker.test.ts"],
  },
  {
    name: "gone worker: its late chunk",
    behind: "the next number, which both workers mint alike",
    edits: [edit("db/code/jobs/mint_chunk.sql", "     or v_batch.mint_holder is distinct from p_holder\n", "")],
    tests: ["test/worker/tasks/gone-worker.test.ts"],
  },
  {
    name: "gone worker: its late failure",
    edits: [edit("db/code/jobs/record_deliveries.sql", "    and v_is_holder\n", "")],
    tests: ["test/worker/tasks/gone-worker.test.ts"],
  },
  {
    name: "gone worker: its requests are cut",
    edits: [edit("src/worker/tasks/deliver.ts", "AbortSignal.any([cutting.signal, session.lost])", "cutting.signal")],
    tests: ["test/worker/tasks/gone-worker.test.ts"],
  },
  {
    name: "frozen worker loses its session",
    behind: "the leases, after 30 and 60 s",
    edits: [edit("src/worker/worker-session.ts", 'name: "coupon worker session", idleTimeoutMs', 'name: "x"')],
    tests: ["test/worker/kill.test.ts"],
  },
  {
    name: "silent connections of work",
    behind: "deadlines of 30 s",
    edits: [edit("src/work.ts", "database?.reconnect();", "void database;")],
    tests: ["test/worker/silent-connections.test.ts"],
  },
  {
    name: "silent queue of work",
    behind: "signs of life of the job runner, after 30 s",
    edits: [edit("src/work.ts", "      runner.reconnect();\n", "")],
    tests: ["test/worker/silent-connections.test.ts"],
  },
  {
    name: "silent connections of serve",
    behind: "the watchdog of each statement, after 4.5 s",
    edits: [edit("src/serve.ts", "onSilent: gate.reconnect,", "onSilent: () => {},")],
    tests: ["test/http/silent-database.test.ts"],
  },
  {
    name: "a late answer of the database is no silence",
    edits: [
      edit(
        "src/database/heartbeat.ts",
        '      pulse = await Promise.race([answer, opening.then((): Pulse => "late")]);\n',
        "",
      ),
    ],
    tests: ["test/database/heartbeat.test.ts"],
  },
  {
    name: "private addresses of webhooks",
    edits: [edit("src/worker/address-rule.ts", "if (bad !== undefined) callback(", "if (bad === found[-1]) callback(")],
    tests: ["test/worker/address-rule.test.ts", "test/worker/webhook-sender.test.ts"],
  },
];
