// Guards of the embedded server, of migrate and of settings.
import { edit, type Sabotage } from "./sabotage.ts";

export const embeddedGuards: Sabotage[] = [
  {
    name: "SIGINT until the server has ended",
    edits: [edit("src/embedded/server.ts", "in $(seq 60)", "in once")],
    mayThrow: true,
    tests: ["test/embedded/server.test.ts"],
  },
  {
    name: "no link in place of the server's log",
    edits: [
      edit("src/embedded/server.ts", " | O_NOFOLLOW", ""),
      edit("src/embedded/server.ts", "?.isSymbolicLink()", "?.isFIFO()"),
    ],
    mayThrow: true,
    tests: ["test/embedded/server.test.ts"],
  },
  {
    name: "owner of the folder that takes the data",
    edits: [edit("src/embedded/data-directory.ts", " || found.uid !== 0", "")],
    tests: ["test/embedded/data-directory.test.ts"],
  },
  {
    name: "a link of the operator to the folder that takes the data",
    edits: [edit("src/embedded/data-directory.ts", 'candidate.startsWith("/var/tmp/")', "true")],
    tests: ["test/embedded/data-directory.test.ts"],
  },
  {
    name: "the shell that supervises a server, from ps",
    edits: [edit("src/embedded/postmaster.ts", " && !line.includes(` ${supervisorName} `)", "")],
    tests: ["test/embedded/postmaster.test.ts"],
  },
  {
    name: "program whose path has a space, from ps",
    edits: [edit("src/embedded/postmaster.ts", 'process.platform === "linux"', "true")],
    tests: ["test/embedded/postmaster.test.ts"],
  },
  {
    name: "characters in the name of the database",
    edits: [edit("src/common/config.ts", '/[;/?:@&=+$,#]/.test(address?.database ?? "")', "false")],
    tests: ["test/common/config.test.ts"],
  },
  {
    name: "invalid index of an online migration",
    edits: [edit("src/migration/run-migrations.ts", "          await refuseInvalidIndexes(session, name);\n", "")],
    tests: ["test/commands/migrate.test.ts"],
  },
  {
    name: "an online migration begins the minute of locks anew",
    edits: [edit("src/migration/migrate.ts", "deadline === 0 || applied.length > before", "deadline === 0")],
    tests: ["test/migration/migrate.test.ts"],
  },
  {
    name: "migrations that a failed attempt applied are counted",
    edits: [
      edit(
        "src/migration/migrate.ts",
        "migrated: ${pendingCount} migrations",
        "migrated: ${migrations.length} migrations",
      ),
      edit("src/migration/migrate.ts", "const { loaded } = await", "const { migrations, loaded } = await"),
    ],
    tests: ["test/migration/migrate.test.ts"],
  },
  {
    name: "an online migration is recorded by itself",
    edits: [edit("src/migration/run-migrations.ts", "if (isOnline && !isDryRun)", "if (false)")],
    tests: ["test/commands/migrate.test.ts"],
  },
  {
    name: "a log that has reached a quota",
    edits: [edit("src/common/log.ts", ' || code === "EDQUOT" || code === "EFBIG"', "")],
    tests: ["test/common/log.test.ts"],
  },
  {
    name: "a logged error names the place in the database",
    edits: [edit("src/common/log.ts", "message: error.message, where, stack", "message: error.message, stack")],
    tests: ["test/common/log.test.ts"],
  },
  {
    name: "the log leaves out what else an error holds",
    edits: [
      edit("src/common/log.ts", "return { name: error.name, code,", "return { ...error, name: error.name, code,"),
    ],
    tests: ["test/common/log.test.ts"],
  },
  {
    name: "the time of a line of the log",
    edits: [edit("src/common/log.ts", " timestamp: pino.stdTimeFunctions.isoTime,", "")],
    tests: ["test/common/log.test.ts"],
  },
  {
    name: "no process or host in the log",
    edits: [edit("src/common/log.ts", " base: null,", "")],
    tests: ["test/common/log.test.ts"],
  },
];
