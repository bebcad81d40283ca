// Guards whose absence shows only in a long run: the second page, the second restore, a failure that repeats.
import { edit, type Sabotage } from "./sabotage.ts";

export const longRunGuards: Sabotage[] = [
  {
    name: "only the deliveries of the disabled webhook are parked",
    edits: [
      edit(
        "db/code/rules/webhook/disable_webhook.sql",
        "and d.party_id = p_party_id and d.parked_at is null",
        "and d.parked_at is null",
      ),
    ],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "only one webhook is disabled",
    edits: [
      edit(
        "db/code/rules/webhook/disable_webhook.sql",
        "where w.tenant_id = p_tenant_id and w.party_id = p_party_id",
        "where w.tenant_id = p_tenant_id",
      ),
    ],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "an enabled webhook is not paused",
    edits: [edit("db/code/admin/enable_webhook.sql", "disabled_at = null, paused_until = null", "disabled_at = null")],
    tests: ["test/worker/tasks/deliver.test.ts"],
  },
  {
    name: "verify reads every page of statements",
    edits: [
      edit(
        "src/commands/statements.ts",
        "if (last === undefined) return;",
        "if (last !== undefined || page.length === 0) return;",
      ),
    ],
    tests: ["test/commands/statements.test.ts"],
  },
  {
    name: "a second restore raises the feeds, whatever the clock says",
    edits: [edit("db/code/admin/note_restore.sql", "greatest(v_now, s.feed_base + 1000000000000)", "v_now")],
    tests: ["test/db/admin/feeds.test.ts"],
  },
  {
    name: "a failing ticker is not woken before its pause is over",
    edits: [
      edit(
        "src/worker/ticker.ts",
        "if (running === undefined && !isFailing) start();",
        "if (running === undefined) start();",
      ),
    ],
    tests: ["test/worker/ticker.test.ts"],
  },
  {
    name: "a failing ticker pauses in full",
    edits: [edit("src/worker/ticker.ts", "schedule(isWoken && !isFailing ? 0", "schedule(isWoken ? 0")],
    tests: ["test/worker/ticker.test.ts"],
  },
  {
    name: "a failed statement rests",
    edits: [
      edit("src/worker/tasks/close.ts", "        restingUntil.set(nameOf(due), performance.now() + restMs);\n", ""),
    ],
    // countCalls ends an endless loop with an error.
    mayThrow: true,
    tests: ["test/worker/tasks/failing.test.ts"],
  },
  {
    name: "a sequencer without the lock leaves",
    edits: [
      edit("src/worker/tasks/sequence.ts", "step!.is_drained || step!.sequenced === 0 ||", "step!.is_drained ||"),
    ],
    // countCalls ends an endless loop with an error.
    mayThrow: true,
    tests: ["test/worker/tasks/failing.test.ts"],
  },
  {
    name: "twin codes within a chunk collide",
    behind: "the unique index of codes, as an error of the job",
    edits: [edit("db/code/rules/batch/find_collisions.sql", "h.occurrence > 1\n     or exists", "exists")],
    tests: ["test/worker/tasks/mint-collisions.test.ts"],
  },
  {
    name: "a batch create is compared with both batches that it names",
    edits: [edit("db/code/api/create_batch.sql", "  order by b.body_hash = p_call.body_hash\n", "")],
    tests: ["test/db/api/idempotency-keys.test.ts"],
  },
  {
    name: "a file that takes only a part of an output",
    edits: [
      edit(
        "src/common/output.ts",
        "while (written < bytes.length) written += writeSync(1, bytes, written);",
        "writeSync(1, bytes);",
      ),
    ],
    tests: ["test/common/output.test.ts"],
  },
  {
    name: "a table that cannot be pruned keeps no other from it",
    edits: [
      edit(
        "src/worker/tasks/prune.ts",
        "await prune().catch((error: unknown) => errors.push(error));",
        "await prune();",
      ),
    ],
    tests: ["test/worker/tasks/prune.test.ts"],
  },
  {
    name: "more old rows in the same blocks",
    edits: [edit("src/worker/tasks/prune.ts", "removed !== null && removed < stepSize", "removed !== null")],
    tests: ["test/worker/tasks/prune.test.ts"],
  },
];
