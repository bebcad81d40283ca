// What `npx ley` does in this project (see ley.config.js). `ley status` and `ley new` work. `ley up` and `ley down`
// are refused, because ley would leave out the lock, the transaction and the functions of db/code.
import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { readConfig } from "../config/config.ts";
import { messageOf } from "../common/program.ts";
import { findAddress } from "../embedded/find-address.ts";
import { readStatus } from "../migration/applied.ts";
import { databaseFolder, listMigrations } from "../migration/db-files.ts";

/** The configuration that ley needs. Without our driver, ley would create its own table public.migrations. */
interface LeyConfig {
  driver: {
    connect(): void;
    setup(): Promise<{ name: string }[]>;
    loop(): never;
    end(): void;
  };
}

const refusals: Record<string, string> = {
  up: "ley up is not used here: `npm run migrate` applies the migrations and loads the functions of db/code",
  down: "migrations only go forward: restore a backup instead (`npm run migrate` applies new migrations)",
};

/** ley calls this after it has parsed its command line, `args`, and before it acts. */
export function configureLey(args: string[]): LeyConfig {
  try {
    const { command, subject } = readCommand(args);
    if (command === "new") {
      console.log(createMigration(subject));
      process.exit(0);
    }
    // DATA_DIR may be relative. It is relative to the root of the project, as it is for npm run.
    process.chdir(path.dirname(databaseFolder));
    const config = readConfig();
    // ley looks for a folder `migrations` in the current folder.
    process.chdir(databaseFolder);
    return { driver: makeDriver(config) };
  } catch (error) {
    console.error(messageOf(error));
    process.exit(1);
  }
}

/** Exported for its test. */
export function readCommand(args: string[]): { command: string; subject: string } {
  const text = { type: "string" } as const;
  // The same options as ley's, so that the value of an option is not mistaken for the command.
  const options = {
    cwd: { ...text, short: "C" },
    dir: { ...text, short: "d" },
    config: { ...text, short: "c" },
    driver: { ...text, short: "D" },
    require: { ...text, short: "r" },
    length: { ...text, short: "l" },
  };
  const { values, positionals } = parseArgs({ args, options, strict: false, allowPositionals: true });
  const [command = "", ...words] = positionals;
  if (refusals[command] !== undefined) throw new Error(refusals[command]);
  const unusable = Object.keys(values).find((name) => name !== "config");
  if (unusable !== undefined) throw new Error(`leave out --${unusable}: ley.config.js sets what ley needs here`);
  return { command, subject: words.join("-") };
}

/** ley lists the files of db/migrations and compares them with what `setup` returns. */
function makeDriver(config: ReturnType<typeof readConfig>): LeyConfig["driver"] {
  return {
    connect: () => {},
    async setup() {
      try {
        const { migrations, unknown } = await readStatus(findAddress(config));
        if (unknown.length > 0) throw new Error(`the database is newer: it has the migration ${unknown.join(", ")}`);
        return migrations.map(({ name }) => ({ name: `${name}.ts` }));
      } catch (error) {
        // ley prints the stack and every property of an error, which may hold the values of a connection.
        const message = messageOf(error);
        throw Object.assign(new Error(message), { stack: `Error: ${message}` });
      }
    },
    loop: () => {
      throw new Error(refusals["up"]);
    },
    end: () => {},
  };
}

const stub = `import { sqlMigration } from "../../src/migration/sql-migration.ts";

export const { up, down } = sqlMigration(import.meta.url);
`;

/** Creates the next migration and returns what to do with it. */
function createMigration(words: string): string {
  const subject = words.replace(/\s+/g, "-");
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(subject)) {
    throw new Error("usage: npx ley new SUBJECT, in lower case letters, digits and hyphens, such as coupon-notes");
  }
  const last = Number.parseInt(listMigrations().at(-1) ?? "0", 10);
  const name = `${String(last + 1).padStart(3, "0")}-${subject}`;
  const file = path.join(databaseFolder, "migrations", name);
  if (existsSync(`${file}.sql`)) throw new Error(`db/migrations/${name}.sql already exists, without its .ts file`);
  writeFileSync(`${file}.sql`, "");
  writeFileSync(`${file}.ts`, stub);
  return `created db/migrations/${name}.sql, which is empty
created db/migrations/${name}.ts, which runs it
Write the SQL, then run \`npm run migrate\` and \`npm run snapshot\`.`;
}
