// Guards of upgrades, restores and patches.
import { edit, type Sabotage } from "./sabotage.ts";

export const operationGuards: Sabotage[] = [
  {
    name: "connections wait while a program is busy",
    edits: [edit("src/server/open-port.ts", "host: place.host, backlog }", "host: place.host }")],
    tests: ["test/server/open-port.test.ts"],
  },
  {
    name: "the brackets of an IPv6 address in an origin",
    edits: [edit("src/server/open-port.ts", 'family === "IPv6" ? `[${address}]` : address', "address")],
    tests: ["test/server/open-port.test.ts"],
  },
  {
    name: "a program outlives a full disk of its log",
    edits: [edit("src/common/log.ts", "if (!isFull(error)) throw error;", "throw error;")],
    tests: ["test/common/log.test.ts"],
  },
  {
    name: "the log says where lines are missing",
    edits: [edit("src/common/log.ts", "hasLost = true;", "hasLost = false;")],
    tests: ["test/common/log.test.ts"],
  },
  {
    name: "readyz reports a full disk",
    edits: [edit("src/serve.ts", "if (gate.isDiskFull())", "if (false)")],
    tests: ["test/operations/full-disk.test.ts"],
  },
  {
    name: "a full disk is one line of the log",
    edits: [edit("src/gate/disk-watch.ts", "if (failedAt === null)", "if (true)")],
    tests: ["test/gate/disk-watch.test.ts", "test/operations/full-disk.test.ts"],
  },
  {
    name: "a full disk is over after a quiet time",
    edits: [edit("src/gate/disk-watch.ts", "failedAt !== null && isQuiet()", "failedAt !== null")],
    tests: ["test/gate/disk-watch.test.ts"],
  },
  {
    name: "the embedded server starts as soon as its disk has space",
    edits: [edit("src/embedded/disk-space.ts", "!(wasFull && hasSpace(folder))", "true")],
    tests: ["test/embedded/disk-space.test.ts"],
  },
  {
    name: "the embedded server does not recover by itself",
    edits: [edit("src/embedded/server.ts", 'restart_after_crash: "off"', 'restart_after_crash: "on"')],
    tests: ["test/embedded/server.test.ts"],
  },
  {
    name: "the end of the embedded server is logged once",
    edits: [edit("src/embedded/server.ts", "      hasRun = false;\n", "")],
    tests: ["test/operations/full-disk.test.ts"],
  },
  {
    name: "at a stop, an answer says that it is the last of its connection",
    edits: [edit("src/http/drain.ts", '  connection.latest!.setHeader("Connection", "close");\n', "")],
    tests: ["test/http/drain.test.ts", "test/operations/drain.test.ts"],
  },
  {
    name: "at a stop, connections in use stay open until their next answer",
    edits: [
      edit(
        "src/http/drain.ts",
        "TcpServer.prototype.close.call(server, () => resolve())",
        "server.close(() => resolve())",
      ),
    ],
    tests: ["test/http/drain.test.ts", "test/operations/drain.test.ts"],
  },
  {
    name: "at a stop, only unused connections are closed without an answer",
    edits: [edit("src/http/drain.ts", "const idleAfterMs = 1_000", "const idleAfterMs = 0")],
    tests: ["test/http/drain.test.ts", "test/operations/drain.test.ts"],
  },
  {
    name: "at a stop, requests behind the last answer are not handled",
    edits: [edit("src/http/drain.ts", "if (connection.isEnding) return false;", "")],
    tests: ["test/http/drain.test.ts"],
  },
  {
    name: "at a stop, connections that wait are accepted first",
    edits: [edit("src/http/drain.ts", "      await acceptWaiting(server);\n", "")],
    tests: ["test/http/drain.test.ts"],
  },
  {
    name: "at a stop, connections are accepted for longer than an instant",
    edits: [edit("src/http/drain.ts", "const acceptWithinMs = 2_000", "const acceptWithinMs = 0")],
    tests: ["test/http/drain.test.ts"],
  },
  {
    name: "at a stop, a connection is not reset after its last answer",
    edits: [edit("src/http/drain.ts", "  socket.destroySoon = () => endSide(socket);\n", "")],
    tests: ["test/http/drain.test.ts"],
  },
  {
    name: "migrate waits only briefly for locks",
    edits: [edit("src/migration/run-migrations.ts", "const lockTimeoutMs = 200", "const lockTimeoutMs = 10_000")],
    tests: ["test/migration/migrate.test.ts"],
  },
  {
    name: "functions that programs call stay for one version",
    edits: [edit("src/migration/load-code.ts", "!names.has(`${schema}.${name}`) && note !== retired,", "false,")],
    tests: ["test/migration/load-code.test.ts"],
  },
  {
    name: "functions stay until running calls have ended",
    edits: [
      edit("src/migration/load-code.ts", '  await session.run("rollback to savepoint trial");\n', ""),
      edit("src/migration/load-code.ts", "unusedRoutines, retired:", "unusedRoutines: [], retired:"),
    ],
    tests: ["test/migration/load-code.test.ts"],
  },
  {
    name: "the old program stays ready during a rollout",
    edits: [edit("src/serve.ts", 'code.split(" ").includes(expected.code)', "code === expected.code")],
    tests: ["test/operations/upgrade.test.ts"],
  },
  {
    name: "feed positions after a restore",
    edits: [edit("db/code/admin/note_restore.sql", "where f.last_position < v_base;", "where false;")],
    tests: ["test/db/admin/feeds.test.ts", "test/operations/restore.test.ts"],
  },
  {
    name: "a retention is at least a day",
    edits: [edit("db/code/rules/admin/check_retention.sql", "if coalesce(p_days, 0) < 1 then", "if false then")],
    tests: ["test/worker/tasks/prune.test.ts"],
  },
  {
    name: "an extension ends after it begins",
    behind: "coupon_validity_is_forward, which shows the row",
    edits: [edit("db/code/admin/extend_coupon.sql", "p_valid_to <= v_coupon.valid_from then", "false then")],
    tests: ["test/db/admin/coupons.test.ts"],
  },
  {
    name: "the reason of destroyed codes",
    edits: [edit("db/code/admin/destroy_codes.sql", "rules.check_reason(p_reason)", "p_reason")],
    tests: ["test/db/admin/access.test.ts", "test/commands/codes.test.ts"],
  },
  {
    name: "unknown options",
    edits: [edit("src/common/command.ts", "if (flag === undefined || ", "if (flag === undefined) continue;\n    if (")],
    tests: ["test/commands/help.test.ts", "test/common/command.test.ts"],
  },
  {
    name: "surplus words",
    edits: [edit("src/common/command.ts", "if (left.length > 0) throw", "if (left.length < 0) throw")],
    tests: ["test/commands/help.test.ts", "test/common/command.test.ts"],
  },
  {
    name: "--help runs nothing",
    edits: [
      edit(
        "src/common/run-command.ts",
        "if (asksForHelp(args)) return console.log(",
        "if (asksForHelp(args)) console.log(",
      ),
    ],
    tests: ["test/commands/help.test.ts"],
  },
  {
    name: "coupon finds its folder through links",
    edits: [edit("bin/coupon", 'while [ -L "$file" ]', "while false")],
    tests: ["test/commands/coupon.test.ts"],
  },
  {
    name: "coupon needs a Node that is new enough",
    edits: [edit("bin/coupon", "    v2[4-9].* | v", "    v* | v")],
    tests: ["test/commands/coupon.test.ts"],
  },
  {
    name: "JSON for a terminal escapes control characters",
    edits: [edit("src/commands/table.ts", ".replace(/[^\\P{C}\\n]/gu, escape)", "")],
    tests: ["test/commands/table.test.ts"],
  },
  {
    name: "completion skips the value of a flag",
    edits: [edit("src/common/completion.ts", "if [[ -n $flag ]]; then flag=; continue; fi", "flag=")],
    tests: ["test/common/completion.test.ts"],
  },
  {
    name: "progress is for a terminal",
    edits: [edit("src/common/progress.ts", "if (!terminal.isTTY)", "if (terminal.columns === -1)")],
    tests: ["test/common/progress.test.ts"],
  },
  {
    name: "progress is gone at the end",
    edits: [edit("src/common/progress.ts", "    line.clear();\n", "")],
    tests: ["test/common/progress.test.ts"],
  },
  {
    name: "ports come before the database",
    edits: [
      edit("src/start.ts", "  const listening = await listen(config, log);\n", ""),
      edit("src/start.ts", "  await migrate(", "  const listening = await listen(config, log);\n  await migrate("),
    ],
    tests: ["test/operations/start.test.ts"],
  },
  {
    name: "a stop during the start is no failure",
    edits: [edit("src/common/program.ts", "if (isStopping) return;", "")],
    tests: ["test/operations/start.test.ts"],
  },
  {
    name: "a database made by other text of a migration",
    edits: [edit("src/migration/applied.ts", "if (others.length === 0) return;", "if (others.length >= 0) return;")],
    tests: ["test/commands/migrate.test.ts", "test/commands/ley.test.ts"],
  },
  {
    name: "reports join the ledger and its redemptions row by row",
    // On a busy machine the first question ends with its statement_timeout.
    mayThrow: true,
    edits: [
      edit(
        "db/code/report/ledger.sql",
        "  on r.redemption_id = any (array[l.entry_id, v.redemption_id])\n     and r.tenant_id",
        "  on r.tenant_id",
      ),
    ],
    tests: ["test/db/report-plans.test.ts"],
  },
  {
    name: "reports of a merchant or an order begin at its redemptions",
    edits: [
      edit(
        "db/migrations/006-redemptions.sql",
        "create index redemption_of_merchant on core.redemption (merchant_id, order_id);",
        "",
      ),
    ],
    tests: ["test/db/report-plans.test.ts"],
  },
  {
    name: "the newest ledger entries are read by time",
    edits: [
      edit("db/migrations/008-ledger.sql", "create index ledger_entry_by_time on core.ledger_entry (recorded_at);", ""),
    ],
    tests: ["test/db/report-plans.test.ts"],
  },
  {
    name: "what belongs to an ID includes the reversal",
    edits: [edit("db/code/report/find_keys.sql", "v.redemption_id = any (v_redemptions)", "false")],
    tests: ["test/db/report-find.test.ts"],
  },
];
