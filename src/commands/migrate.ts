// npm run migrate [-- --status | --dry-run]
// Brings a database to this version of the source: migrations, functions, rights. src/migration/migrate.ts says how.
import { parseArgs } from "node:util";
import { readConfig } from "../common/config.ts";
import { isProgram, messageOf, runProgram } from "../common/program.ts";
import { findAddress } from "../embedded/find-address.ts";
import { readStatus, type Status } from "../migration/applied.ts";
import { dryRun, migrate } from "../migration/migrate.ts";

const usage = `usage: npm run migrate [-- --status | --dry-run]

Applies pending migrations and loads the functions of db/code, all in one transaction.
The database is DATABASE_URL, or else the embedded server that npm start runs in DATA_DIR.

  --status   lists the migrations and says whether the functions are current; changes nothing
  --dry-run  does everything, rolls it back, and prints what a migrate would do; it holds the
             same locks as a migrate, for about half a second; online migrations are not tried
  --help     prints this text`;

function readArgs(): { status?: boolean; "dry-run"?: boolean; help?: boolean } {
  const flag = { type: "boolean" } as const;
  try {
    const { values } = parseArgs({ options: { status: flag, "dry-run": flag, help: { ...flag, short: "h" } } });
    if (values.status && values["dry-run"]) throw new Error("--status and --dry-run exclude each other");
    return values;
  } catch (error) {
    console.error(`${messageOf(error)}\n\n${usage}`);
    process.exit(2);
  }
}

function formatStatus({ migrations, pending, unknown, code, isCodeCurrent }: Status): string {
  return [
    ...migrations.map(({ name, at }) => `applied  ${name}  ${at.toISOString()}`),
    ...pending.map((name) => `pending  ${name}`),
    `code     ${isCodeCurrent ? "current" : code === null ? "not loaded" : "another version"}`,
    unknown.length > 0
      ? `the database is newer than this checkout, which does not know its migration ${unknown.join(", ")}`
      : pending.length > 0 || !isCodeCurrent
        ? "npm run migrate brings the database up to date"
        : "database is up to date",
  ].join("\n");
}

if (isProgram(import.meta)) {
  await runProgram(async () => {
    const { status, "dry-run": isDryRun, help } = readArgs();
    if (help) return console.log(usage);
    const address = findAddress(readConfig());
    if (status) return console.log(formatStatus(await readStatus(address)));
    const wasOutdated = await (isDryRun ? dryRun : migrate)(address, console.log);
    if (!wasOutdated) console.log("database is up to date");
  });
}
