// The settings of each connection of the programs. They take precedence over defaults that a DBA may give the database
// or the login for other programs (`alter database … set`, `alter role … set`).
//
// PostgreSQL 15 to 18 know each of these settings and let every login set it. With any other setting, no connection
// would open.
import { ConfigError } from "../config/config.ts";
import type { Database } from "./types.ts";

export const sessionSettings: Readonly<Record<string, string>> = {
  // How the server writes values, which is how both drivers read them.
  DateStyle: "ISO, MDY",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  bytea_output: "hex",
  // Numbers as the shortest text that reads back as the same number.
  extra_float_digits: "1",
  // The log of migrate has names as a DBA writes them.
  quote_all_identifiers: "off",

  // How the server reads what we send: `null` in an array is not text, and a backslash is an ordinary character.
  array_nulls: "on",
  standard_conforming_strings: "on",
  // None of our statements reads a schema that someone else created.
  search_path: "pg_catalog, pg_temp",

  // A decision reads what was committed before it, even if it had to wait for a row.
  default_transaction_isolation: "read committed",
  default_transaction_read_only: "off",
  // A 2xx answer is on disk.
  synchronous_commit: "on",
  // That nobody waited for a standby is a warning (driver.ts).
  client_min_messages: "warning",

  // An error of a statement ends neither the session nor the exception block around it, and `select … into` keeps its
  // usual meaning. migrate compiles the functions under stricter rules.
  exit_on_error: "off",
  "plpgsql.extra_errors": "none",

  // There is no limit, except where a program sets one: a migration may take as long as it needs.
  statement_timeout: "0",
  lock_timeout: "0",
  idle_session_timeout: "0",
  idle_in_transaction_session_timeout: "0",

  // Our statements are short: JIT compilation and parallel workers would take longer than running them.
  jit: "off",
  max_parallel_workers_per_gather: "0",
};

// Login errors that a retry does not cure. The server's message names the login, role or database.
const hopeless: Readonly<Record<string, string>> = {
  // invalid_password, invalid_authorization_specification, invalid_catalog_name
  "28P01": "",
  "28000": "",
  "3D000": "",
  // insufficient_privilege
  "42501": ": grant that right to the login (docs/database.md, Roles)",
  // invalid_parameter_value: there is no such role yet.
  "22023": ": run `npm run migrate` first, which makes the roles",
};

/**
 * Every program runs this first. Throws a ConfigError if the login does not work at all, or if it has a default that
 * breaks the service and that no connection can set: only a superuser may set `session_replication_role`, and not every
 * PostgreSQL 15 has `restrict_nonsystem_relation_kind`.
 */
export async function refuseSettings(rows: Database["rows"]): Promise<void> {
  const [session] = await rows<{ replication: string; restricted: string | null }>(
    `select current_setting('session_replication_role') as replication,
            current_setting('restrict_nonsystem_relation_kind', true) as restricted`,
  ).catch(refuseHopeless);
  const { replication, restricted } = session!;
  if (replication === "replica") refuse("session_replication_role", "no trigger runs and no foreign key is checked");
  if (restricted) refuse("restrict_nonsystem_relation_kind", "no function can read what it needs");
}

/** For what writes. Not a ConfigError: a standby takes writes as soon as it is promoted. */
export async function refuseStandby(rows: Database["rows"]): Promise<void> {
  const [session] = await rows<{ is_read_only: boolean }>(
    "select current_setting('transaction_read_only')::boolean as is_read_only",
  );
  if (session!.is_read_only) throw new Error("the database takes no writes: it is a standby");
}

function refuse(name: string, consequence: string): never {
  throw new ConfigError(`${name} is set for this login, so ${consequence}: reset it with alter role or alter database`);
}

function refuseHopeless(error: unknown): never {
  const advice = hopeless[String((error as { code?: unknown }).code)];
  if (advice === undefined) throw error;
  throw new ConfigError(`DATABASE_URL: ${(error as Error).message}${advice}`);
}
