// npm run migrate brings a database to this version of the source: migrations, functions, rights.
// src/migration/migrate.ts says how.
import { defineCommand } from "../command-line/command.ts";
import { readConfig } from "../config/config.ts";
import { writeOutput } from "../command-line/output.ts";
import { withProgress } from "../command-line/progress.ts";
import { databaseSettings } from "../config/settings.ts";
import { findAddress } from "../embedded/find-address.ts";
import { readStatus, type Status } from "../migration/applied.ts";
import { dryRun, migrate } from "../migration/migrate.ts";
import { formatJson, json } from "./table.ts";

/** The same as a document for programs. */
const describeStatus = ({ migrations, pending, unknown, code, isCodeCurrent }: Status) => ({
  migrations: [
    ...migrations.map(({ name, at }) => ({
      name,
      status: unknown.includes(name) ? "unknown" : "applied",
      applied_at: at.toISOString(),
    })),
    ...pending.map((name) => ({ name, status: "pending", applied_at: null })),
  ],
  code: isCodeCurrent ? "current" : code === null ? "not loaded" : "another version",
  is_up_to_date: pending.length === 0 && unknown.length === 0 && isCodeCurrent,
});

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

export const command = defineCommand({
  name: "migrate",
  about:
    "Brings the database to this version. It applies pending migrations and loads the functions of db/code, all in " +
    "one transaction. The database is DATABASE_URL, or else the embedded server that npm start runs in DATA_DIR. " +
    "It is safe to run again, and several at once. --dry-run holds the same locks for about half a second, and does " +
    "not try online migrations.",
  forms: ["[--status [--json] | --dry-run]"],
  flags: {
    status: { type: "switch", about: "lists the migrations and whether the functions are current; changes nothing" },
    "dry-run": {
      type: "switch",
      about: "prints what a migrate would do, and rolls it back",
    },
    json,
  },
  settings: databaseSettings,
  examples: ["", "--status"],
  refuse({ flags }) {
    if (flags.status && flags["dry-run"]) return "--status and --dry-run exclude each other";
    return flags.json && !flags.status ? "--json needs --status" : null;
  },
  async run({ flags }) {
    const address = findAddress(readConfig());
    if (flags.status) {
      const status = await readStatus(address);
      return writeOutput(`${flags.json ? formatJson(describeStatus(status)) : formatStatus(status)}\n`);
    }
    const wasOutdated = await withProgress((progress) => {
      const log = (line: string): void => {
        progress.clear();
        console.log(line);
      };
      progress.show("connecting");
      return (flags["dry-run"] ? dryRun : migrate)(address, log, progress.show);
    });
    if (!wasOutdated) console.log("database is up to date");
  },
});
