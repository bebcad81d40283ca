// Session defaults that change how values are read and written, what a statement means, or how long a session may take.
// A DBA gives them to a database or a login, for other programs.
import type { Test } from "tap";
import { openSession } from "../../src/database/connect.ts";
import { createEmptyDatabase } from "./database.ts";
import { newRequestId } from "./request-id.ts";

/** By the name of a setting. */
export type Defaults = Record<string, string>;

/** A person may have these in psql too. */
const inPsql: Defaults = {
  DateStyle: "German",
  IntervalStyle: "sql_standard",
  TimeZone: "Asia/Kathmandu",
  timezone_abbreviations: "India",
  bytea_output: "escape",
  extra_float_digits: "-15",
  quote_all_identifiers: "on",
  xmlbinary: "hex",
  xmloption: "document",
  array_nulls: "off",
  standard_conforming_strings: "off",
  backslash_quote: "off",
  transform_null_equals: "on",
  search_path: "other",
  row_security: "off",
  "plpgsql.extra_errors": "all",
  "plpgsql.extra_warnings": "all",
  "plpgsql.check_asserts": "off",
  "plpgsql.variable_conflict": "use_column",
  plan_cache_mode: "force_custom_plan",
  jit: "on",
  max_parallel_workers_per_gather: "4",
  constraint_exclusion: "on",
  stats_fetch_consistency: "snapshot",
  default_text_search_config: "pg_catalog.german",
  synchronous_commit: "off",
};

export const hostileDefaults: Defaults = {
  ...inPsql,
  client_encoding: "LATIN1",
  check_function_bodies: "off",
  default_transaction_isolation: "serializable",
  default_transaction_read_only: "on",
  default_transaction_deferrable: "on",
  statement_timeout: "1",
  lock_timeout: "1",
  idle_session_timeout: "1",
  idle_in_transaction_session_timeout: "1",
  exit_on_error: "on",
};

/** SQL: `start` is `alter database … set`, `alter role … set` or `set`. */
const write = (start: string, defaults: Defaults): string =>
  Object.entries(defaults)
    .map(([name, value]) => `${start} ${name} = '${value}';`)
    .join("\n");

export const setInPsql: string = write("set", inPsql);

/** An empty database, whose owner is an ordinary login. */
export async function openPlace(t: Test) {
  const { address, name, drop } = await createEmptyDatabase();
  const [login, password] = [`${name}_login`, newRequestId()];
  const psql = openSession(address, { name: "psql" });
  const cluster = openSession({ ...address, database: "postgres" }, { name: "psql" });
  t.teardown(async () => {
    await psql.end();
    await drop();
    await cluster.run(`drop role "${login}"`);
    await cluster.end();
  });
  await psql.run(`
    create role "${login}" login createrole password '${password}';
    alter database "${name}" owner to "${login}";
    grant coupon_owner, coupon_api, coupon_worker, coupon_report, coupon_admin, coupon_console,
      coupon_portal
    to "${login}" with admin option`);
  return {
    /** Of the login. */
    address: { ...address, user: login, password },
    /** A superuser's session. */
    psql,
    /** To whom defaults are given, lowest precedence first. */
    holders: [`database "${name}"`, `role "${login}"`, `role "${login}" in database "${name}"`],
    give: (holder: string, defaults: Defaults) =>
      psql.run(`alter ${holder} reset all; ${write(`alter ${holder} set`, defaults)}`),
  };
}
