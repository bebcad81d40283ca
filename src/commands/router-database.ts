// The connection of a command to the database of a router, as a member of coupon_owner.
import { provideContext, type Command } from "../command-line/command.ts";
import { writeOutput } from "../command-line/output.ts";
import { ConfigError, readConfig } from "../config/config.ts";
import { type Address, joinPlaces, listServers, readOptions } from "../config/database-address.ts";
import { connect, openSession, sqlState } from "../database/connect.ts";
import { sessionSettings } from "../database/session-settings.ts";
import type { Database } from "../database/types.ts";
import { findAddress } from "../embedded/find-address.ts";
import type { FoundVersion, Version } from "../database/read-version.ts";
import { dropReports, makeReports, setReportLogin } from "../migration/router-reports.ts";

/** What a router knows of a cell. `problem`: why it does not serve. */
export type CellState = {
  cell: number;
  address: string;
  migration: string | null;
  code: string | null;
  problem: string | null;
};

/** Gives each command of the group the address in DATABASE_URL, and prints the text that it returns. */
export const provideAddress = (group: Command<Address, string>): Command =>
  provideContext(group, async (run) => {
    const output = await run(findAddress(readConfig()));
    if (output !== "") await writeOutput(`${output}\n`);
  });

export async function withRouter<T>(address: Address, run: (database: Database) => Promise<T>): Promise<T> {
  const database = connect(address, { name: "coupon router", role: "coupon_owner", max: 1 });
  try {
    return await run(database).catch(explain);
  } finally {
    await database.end();
  }
}

// undefined_table, undefined_function, invalid_schema_name, invalid_parameter_value (no such role).
function explain(error: unknown): never {
  if (["42P01", "42883", "3F000", "22023"].includes(sqlState(error) ?? ""))
    throw new ConfigError("DATABASE_URL is no router, or one of an older version: run `coupon router migrate`");
  throw error;
}

export async function readRouterVersion(database: Database): Promise<Version> {
  const [version] = await database.rows<Version>("select migration, code from rules.read_version()");
  return version!;
}

export async function listCells(database: Database): Promise<CellState[]> {
  const cells = await database.rows<{ cell: number; connection: string }>(
    "select cell, connection from router.list_connections()",
  );
  const states: CellState[] = [];
  const homes = new Map<number, number>();
  // One after the other: one that does not answer takes two seconds.
  for (const { cell, connection } of cells) {
    const places = listServers(parseConnection(connection)).map(
      ({ host, port, database: name }) => `${host}:${port}/${name}`,
    );
    const { tenants, ...state } = await readCell(database, cell);
    const twice = tenants.find((tenant) => homes.has(tenant));
    const problem = twice === undefined ? null : `tenant number ${twice} lives in cell ${homes.get(twice)} too`;
    for (const tenant of tenants) homes.set(tenant, cell);
    states.push({ cell, address: places.join(), ...state, problem: state.problem ?? problem });
  }
  return states;
}

type Found = FoundVersion & { is_read_only: boolean };
/** tenants: the numbers of those that live there. */
type CellAnswer = Omit<CellState, "cell" | "address"> & { tenants: number[] };

async function readCell(database: Database, cell: number): Promise<CellAnswer> {
  try {
    const [found] = await database.rows<Found>("select * from gate.read_cell_version($1)", [cell]);
    const { migration, code } = found!;
    const problem = describeProblem(cell, found!);
    return { migration, code, problem, tenants: problem === null ? await listTenants(database, cell) : [] };
  } catch (error) {
    return { migration: null, code: null, problem: (error as Error).message, tenants: [] };
  }
}

async function listTenants(database: Database, cell: number): Promise<number[]> {
  const [row] = await database.rows<{ all: string }>("select to_json(remote.list_tenants($1))::text as all", [cell]);
  return JSON.parse(row!.all) as number[];
}

function describeProblem(number: number, { cell, server_cell, is_read_only }: Found): string | null {
  if (cell !== number || server_cell !== number)
    return `its database is cell ${cell}, and coupon.cell of its server is ${server_cell}`;
  return is_read_only ? "it takes no writes: it is a standby" : null;
}

/** Refuses a server that does not answer, or that is neither the cell with this number nor a standby. */
export async function addCell(address: Address, number: number, cell: Address & { user: string }): Promise<void> {
  const { user, password = null } = cell;
  const parameters = [number, formatConnection(cell), user, password];
  await withRouter(address, (database) => database.rows("select router.add_cell($1, $2, $3, $4)", parameters));
}

/** isLost: it cannot be asked whether tenants live there. */
export async function removeCell(address: Address, number: number, { isLost }: { isLost: boolean }): Promise<void> {
  const session = openSession(address, { name: "coupon router" });
  try {
    await dropReports(session, number);
    try {
      await session.rows("select router.remove_cell($1, $2)", [number, isLost]);
    } finally {
      await makeReports(session, console.error, { knowsHomes: true });
    }
  } catch (error) {
    explain(error);
  } finally {
    await session.end();
  }
}

/** Makes the reports anew, as the login itself. report: null leaves the login of this cell for reports as it is. */
export async function addReports(address: Address, cell: number, report: (Address & { user: string }) | null) {
  const session = openSession(address, { name: "coupon router" });
  try {
    if (report !== null) await setReportLogin(session, cell, report);
    // Without what is known of homes: a cell is added before tenants move to it.
    await makeReports(session, console.error, { knowsHomes: false }).catch(explain);
  } finally {
    await session.end();
  }
}

/** Reads what formatConnection wrote: the address of a cell, without login. */
export function parseConnection(text: string): Address {
  const found = [...text.matchAll(/(\w+)='((?:[^'\\]|\\.)*)'/g)];
  const all = Object.fromEntries(found.map(([, name, value]) => [name!, value!.replace(/\\(.)/g, "$1")]));
  return readOptions(all);
}

/**
 * The connection string of a cell for libpq, without login. The options are those of every connection of serve. Of
 * several servers, libpq takes the one that takes writes.
 */
function formatConnection(cell: Address): string {
  const { database = "", parameters = {} } = cell;
  const settings = { ...sessionSettings, role: "coupon_api", statement_timeout: "3s", lock_timeout: "2s" };
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value.replaceAll(" ", "\\ ")}`);
  const hasOthers = cell.others !== undefined;
  const all = {
    ...joinPlaces(cell),
    dbname: database,
    connect_timeout: "2",
    // A machine that vanished is noticed after this time, and then the next one is asked.
    tcp_user_timeout: hasOthers ? "1000" : "3000",
    application_name: "coupon router",
    ...(hasOthers && { target_session_attrs: "read-write" }),
    ...parameters,
    options: options.join(" "),
  };
  return Object.entries(all)
    .map(([name, value]) => `${name}='${value.replace(/['\\]/g, "\\$&")}'`)
    .join(" ");
}
