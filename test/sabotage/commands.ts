// Guards of the commands of operators: what they list, refuse and report.
import { edit, type Sabotage } from "./sabotage.ts";

export const commandGuards: Sabotage[] = [
  {
    name: "a release that changes only functions is not up to date",
    edits: [
      edit(
        "src/commands/migrate.ts",
        "pending.length === 0 && unknown.length === 0 && isCodeCurrent",
        "pending.length === 0 && unknown.length === 0",
      ),
    ],
    tests: ["test/commands/migrate-status.test.ts"],
  },
  {
    name: "the advice after a release that changes only functions",
    edits: [edit("src/commands/migrate.ts", "pending.length > 0 || !isCodeCurrent", "pending.length > 0")],
    tests: ["test/commands/migrate-status.test.ts"],
  },
  {
    name: "statements are listed from the newest",
    edits: [
      edit(
        "src/commands/statements.ts",
        "order by business_date desc, tenant, distributor",
        "order by business_date, tenant, distributor",
      ),
    ],
    tests: ["test/commands/statements.test.ts"],
  },
  {
    name: "attempts are listed from the newest",
    edits: [edit("src/commands/webhooks.ts", "order by attempted_at desc, event", "order by attempted_at, event")],
    tests: ["test/commands/webhooks.test.ts"],
  },
  {
    name: "parked deliveries are listed from the oldest",
    edits: [edit("src/commands/webhooks.ts", "order by recorded_at, event", "order by recorded_at desc, event")],
    tests: ["test/commands/webhooks.test.ts"],
  },
  {
    name: "the end of a replayed range is a time with a zone",
    edits: [edit("src/commands/webhooks.ts", "refuseTime(from) ?? refuseTime(to)", "refuseTime(from)")],
    tests: ["test/commands/webhooks.test.ts"],
  },
  {
    name: "a test event that nobody sends is a failure",
    edits: [
      edit(
        "src/commands/webhook-test.ts",
        "throw new Error(`${event} still waits after 30 s",
        "return (`${event} still waits after 30 s",
      ),
    ],
    tests: ["test/commands/webhook-test.test.ts"],
  },
  {
    name: "a test event has half a minute",
    edits: [edit("src/commands/webhook-test.ts", "round < 150", "round < 15")],
    tests: ["test/commands/webhook-test.test.ts"],
  },
  {
    name: "the log of one party's webhook",
    edits: [edit("src/commands/webhooks.ts", "where tenant = $1 and party = $2", "where tenant = $1 or party = $2")],
    tests: ["test/commands/webhooks-scope.test.ts"],
  },
  {
    name: "the secrets of the demo are their owner's",
    edits: [
      edit(
        "src/commands/demo-tenants.ts",
        "`${JSON.stringify(secrets, null, 2)}\\n`, { mode: 0o600 })",
        "`${JSON.stringify(secrets, null, 2)}\\n`)",
      ),
    ],
    tests: ["test/commands/demo.test.ts"],
  },
  {
    name: "a file names each party once",
    edits: [
      edit(
        "src/commands/provisioning.ts",
        "delegates: unique(z.array(party), (value) => value).optional()",
        "delegates: z.array(party).optional()",
      ),
    ],
    mayThrow: true,
    tests: ["test/commands/provisioning.test.ts"],
  },
  {
    name: "migrate checks PL/pgSQL strictly",
    edits: [
      edit(
        "src/migration/run-migrations.ts",
        "local plpgsql.extra_errors = 'all'",
        "local plpgsql.extra_errors = 'none'",
      ),
    ],
    tests: ["test/migration/migrate.test.ts"],
  },
  {
    name: "the log of the embedded server holds no statements",
    edits: [edit("src/embedded/server.ts", '  log_min_error_statement: "panic",\n', "")],
    tests: ["test/embedded/server.test.ts"],
  },
  {
    name: "a provisioning file is searched for codes to its end",
    edits: [edit("src/commands/apply.ts", "createCodeFinder(keys, Infinity)", "createCodeFinder(keys)")],
    mayThrow: true,
    tests: ["test/commands/apply-codes.test.ts"],
  },
];
