// Guards of the worker's tasks after a failure, and of its times.
import { edit, type Sabotage } from "./sabotage.ts";

export const backgroundGuards: Sabotage[] = [
  {
    name: "a failed statement rests for a minute of the same clock",
    edits: [edit("src/worker/tasks/close.ts", "performance.now() + restMs", "Date.now() + restMs")],
    tests: ["test/worker/tasks/failing.test.ts"],
  },
  {
    name: "a walk of old rows that failed has ended",
    edits: [
      edit(
        "src/worker/tasks/prune.ts",
        "    isRunning = false;\n    if (errors.length > 0) throw errors[0];\n",
        "    if (errors.length > 0) throw errors[0];\n    isRunning = false;\n",
      ),
    ],
    tests: ["test/worker/tasks/prune.test.ts"],
  },
  {
    name: "a code that collides in a later chunk",
    mayThrow: true,
    edits: [edit("src/worker/tasks/mint.ts", "const index = number - chunk.first;", "const index = number - 1;")],
    tests: ["test/worker/tasks/mint-collisions.test.ts"],
  },
  {
    name: "a tenant's next batch comes after those of others that have as many in work",
    edits: [
      edit("db/code/jobs/list_due_batches.sql", "partition by p.tenant_id, p.is_due", "partition by p.tenant_id"),
    ],
    tests: ["test/worker/tasks/mint.test.ts"],
  },
  {
    name: "the end of a session is known to those who claimed",
    edits: [edit("src/worker/worker-session.ts", "      current?.end();\n", "")],
    tests: ["test/worker/worker-session.test.ts"],
  },
  {
    name: "the worker waits as long for a statement as the server",
    edits: [edit("src/work.ts", "statementTimeoutMs: 600_000 }, 610_000)", "statementTimeoutMs: 600_000 })")],
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "ten minutes to sum up a statement",
    edits: [edit("src/work.ts", "statementTimeoutMs: 600_000 }, 610_000)", "statementTimeoutMs: 60_000 }, 610_000)")],
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "the worker waits as long for the self-check as the server",
    edits: [edit("src/worker/tasks/check.ts", "openReconnecting(open, timeoutMs + 5_000)", "openReconnecting(open)")],
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "three hours for the self-check",
    edits: [edit("src/worker/tasks/check.ts", "3 * 3_600_000", "3 * 60_000")],
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "the self-check runs each night",
    edits: [edit("src/work.ts", "30 2 * * * check", "30 2 * * 1 check")],
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "a night without a worker is made up for",
    edits: [edit("src/work.ts", "&fill=1d", "")],
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "the log counts failed deliveries only",
    edits: [
      edit(
        "src/worker/tasks/deliver.ts",
        "const failures = results.filter(({ is_taken }) => !is_taken);",
        "const failures = results;",
      ),
    ],
    tests: ["test/commands/webhook-test.test.ts"],
  },
  {
    name: "the log counts parked deliveries",
    edits: [edit("src/worker/tasks/deliver.ts", 'parked: count("parked")', 'parked: count("gone")')],
    tests: ["test/commands/webhook-test.test.ts"],
  },
  {
    name: "an invariant that holds again has no broken rows",
    edits: [edit("src/worker/metrics.ts", "      laws.reset();\n", "")],
    tests: ["test/worker/metrics.test.ts"],
  },
  {
    name: "each night's job does its own task",
    edits: [
      edit(
        "src/work.ts",
        "prune_nonces: pruneNonces,\n    prune_old_rows: pruneOldRows,",
        "prune_nonces: pruneOldRows,\n    prune_old_rows: pruneNonces,",
      ),
    ],
    mayThrow: true,
    tests: ["test/worker/jobs.test.ts"],
  },
  {
    name: "a worker's attempts reach its metrics",
    edits: [edit("src/work.ts", "      onAttempt: observer?.attempted,\n", "")],
    mayThrow: true,
    tests: ["test/worker/jobs.test.ts"],
  },
  {
    name: "a worker's self-check reaches its metrics",
    edits: [edit("src/work.ts", ", onChecked: observer?.checked", "")],
    tests: ["test/worker/jobs.test.ts"],
  },
  {
    name: "a stop ends a self-check",
    edits: [edit("src/worker/tasks/check.ts", 'stopping.addEventListener("abort", giveUp);', "")],
    mayThrow: true,
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "the server notices that the self-check's worker is gone",
    edits: [edit("src/worker/tasks/check.ts", "'10s', false)", "'10s', true)")],
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "half a minute for a worker's short statements",
    edits: [edit("src/work.ts", "statementTimeoutMs: 25_000", "statementTimeoutMs: 2_500")],
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "five seconds for a lock that a worker waits for",
    edits: [edit("src/work.ts", ", lockTimeoutMs: 5_000", "")],
    tests: ["test/worker/long-work.test.ts"],
  },
  {
    name: "the session of a worker outlives its requests",
    edits: [
      edit(
        "src/work.ts",
        "await runner.stop();\n      await session.stop();",
        "await session.stop();\n      await runner.stop();",
      ),
    ],
    tests: ["test/worker/tasks/webhook-lease.test.ts"],
  },
  {
    name: "jobs that failed for good are deleted",
    edits: [edit("src/worker/graphile-runner.ts", "    await deleteFailedJobs(shared);\n", "")],
    tests: ["test/worker/graphile-runner.test.ts"],
  },
  {
    name: "time for each address of a receiver",
    edits: [edit("src/worker/webhook-sender.ts", "    autoSelectFamilyAttemptTimeout: 2_000,\n", "")],
    tests: ["test/worker/webhook-sender.test.ts"],
  },
  {
    name: "background work pauses six times as long as it works",
    edits: [edit("src/worker/throttle.ts", "* pausePerStep", "/ pausePerStep")],
    tests: ["test/worker/throttle.test.ts"],
  },
  {
    name: "places for jobs beside subscribers",
    edits: [edit("src/work.ts", "concurrency: otherJobsAtOnce + maxSubscribersAtOnce", "concurrency: otherJobsAtOnce")],
    tests: ["test/worker/work.test.ts"],
  },
  {
    name: "places for batches and a task of the crontab",
    edits: [edit("src/work.ts", "otherJobsAtOnce = 3", "otherJobsAtOnce = 0")],
    tests: ["test/worker/work.test.ts"],
  },
  {
    name: "half a minute until a job runner counts as silent",
    edits: [edit("src/worker/job-runner.ts", "deadAfterMs: 30_000", "deadAfterMs: 300_000")],
    tests: ["test/worker/job-runner.test.ts"],
  },
  {
    name: "ten seconds for an answer of the job queue",
    edits: [edit("src/worker/job-runner.ts", "answerWithinMs: 10_000", "answerWithinMs: 100_000")],
    tests: ["test/worker/job-runner.test.ts"],
  },
  {
    name: "the look for jobs whose notification was lost",
    edits: [edit("src/worker/graphile-runner.ts", "pollInterval: 5_000", "pollInterval: 500_000")],
    mayThrow: true,
    tests: ["test/worker/graphile-runner.test.ts"],
  },
];
