// The only file that knows the driver (postgres.js). It works around the driver's surprises:
// - By default it sends any number of statements before the first is answered. We send one at a time, so that no call
//   waits behind another call's row lock, and two where the caller asks for it (`pipe` in types.ts).
// - It repeats a statement whose plan is outdated, and then takes the answer of the statement behind it for the
//   repeated one's. So it may not repeat a statement in a pipe; pool.ts does.
// - Its pool rotates through the connections. We give each connection a driver instance and pool them in pool.ts.
// - It has no query deadline. statement_timeout bounds the server; callers bound the rest.
// - Its end() may never return, so ours has a deadline.
// - At each connect it runs a query to learn the array types. If the server goes away at that moment, nothing catches
//   the error and the process ends. So fetch_types is off, and this file writes and reads arrays.
import { isIPv6 } from "node:net";
import postgres from "postgres";
import { type Address, formatUrl, isSocketFolder } from "../config/database-address.ts";
import { beforeDeadline } from "../common/deadline.ts";
import { createPool } from "./pool.ts";
import { sessionSettings } from "./session-settings.ts";
import { readTls, withoutTls } from "./tls.ts";
import type { Database, Options, Session } from "./types.ts";

const endDeadlineMs = 3_000;
// Where the server finds that a prepared statement is gone, or that its columns or those of a function have changed.
const outdated = new Set(["FetchPreparedStatement", "RevalidateCachedQuery", "tupledesc_match"]);

/** Opens up to `max` connections (10 by default), each when it is first needed. */
export function connect(address: Address, options: Options): Database {
  return createPool({
    max: options.max ?? 10,
    // max_pipeline counts the statements that wait for the first one's answer. With 1, the driver would send the next
    // only after both are answered.
    open: (onLost) => wrap(open(address, options, { max: 1, max_pipeline: 2, onclose: onLost })),
    // The driver keeps the error of a lost connection and would fail the next statement with it.
    isOutdated: (error) => error instanceof postgres.PostgresError && outdated.has(error.routine ?? ""),
    isSpent: (error) => /CONNECTION_CLOSED|ECONNRESET|EPIPE/.test(String((error as { code?: unknown }).code)),
  });
}

export function openSession(address: Address, options: Options): Session {
  const lost = new AbortController();
  // By default the driver closes connections of a certain age, even in the middle of a transaction.
  const sql = open(address, options, {
    max: 1,
    max_lifetime: null,
    onclose: () => lost.abort(),
    onnotify: options.onNotify,
  });
  const database = wrap(sql);
  const check = (): void => {
    if (lost.signal.aborted) throw new Error("the connection to the database was lost");
  };
  return {
    ...database,
    lost: lost.signal,
    async rows<T>(text: string, params?: readonly unknown[]) {
      check();
      return database.rows<T>(text, params);
    },
    async run(text) {
      check();
      await sql.unsafe(text).simple();
    },
  };
}

/**
 * Returns the URL for graphile-worker, which uses another driver (pg). It has no parameters for TLS: that driver gets
 * them by readTls. The connection acts as `role`.
 */
export function formatRoleUrl(address: Address, role: string): string {
  const options = Object.entries({ ...sessionSettings, role })
    .map(([name, value]) => `-c ${name}=${value.replaceAll(" ", "\\ ")}`)
    .join(" ");
  const { parameters } = withoutTls(address);
  return formatUrl({ ...address, parameters: { ...parameters, options, application_name: role } });
}

/** Returns the five-character code of an error that the server reported, else null. */
export function sqlState(error: unknown): string | null {
  return error instanceof postgres.PostgresError ? error.code : null;
}

/** Returns the DETAIL of an error that the server reported, else null. Never log it: it may hold values of a row. */
export function sqlDetail(error: unknown): string | null {
  return error instanceof postgres.PostgresError ? (error.detail ?? null) : null;
}

/** Returns where the server found an error in a script: a 1-based position, or a line in the body of a function. */
export function sqlPlace(error: unknown): { position?: number; bodyLine?: number } {
  if (!(error instanceof postgres.PostgresError)) return {};
  if (error.position) return { position: Number(error.position) };
  const line = error.where?.match(/^compilation of PL\/pgSQL function \S+ near line (\d+)/)?.[1];
  return line === undefined ? {} : { bodyLine: Number(line) };
}

const connectionErrors = [
  // Codes of the driver.
  /^(CONNECT_TIMEOUT|CONNECTION_\w+)$/,
  // Codes of the system.
  /^E(CONNREFUSED|CONNRESET|PIPE|NOENT|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)$/,
  // Codes of the server: connection exceptions, shutdowns, too many connections.
  /^(08\w{3}|57P0[123]|53300)$/,
];

/** Whether the server could not be reached or went away, so that the caller may try again. */
export function isConnectionError(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== "string") return error instanceof AggregateError && error.errors.some(isConnectionError);
  return connectionErrors.some((codes) => codes.test(code));
}

function wrap(sql: postgres.Sql): Database {
  // Without `simple: false`, which the driver's types lack, a statement without parameters is not prepared.
  const prepared = { prepare: true, simple: false } as postgres.UnsafeQueryOptions;
  return {
    async rows<T>(text: string, params: readonly unknown[] = [], pipe?: object) {
      // The driver repeats only what it calls prepared.
      const onexecute = () => Object.assign(query, { prepared: false });
      const options = pipe === undefined ? prepared : ({ ...prepared, onexecute } as postgres.UnsafeQueryOptions);
      const query = sql.unsafe(text, toParams(params), options);
      return (await query) as unknown as T[];
    },
    async end() {
      const ending = sql.end({ timeout: endDeadlineMs / 1_000 });
      // Connections that do not close are not an error: the caller could do nothing about it.
      await beforeDeadline(ending, performance.now() + endDeadlineMs + 500).catch(() => {});
    },
  };
}

function open(address: Address, options: Options, more: object): postgres.Sql {
  const { name, role, statementTimeoutMs, lockTimeoutMs, idleTimeoutMs, settings } = options;
  const all = {
    // equivalent mutant (literal): sessions send one statement at a time
    max_pipeline: 0,
    connect_timeout: 5,
    // equivalent mutant (literal): we list the array types that we read
    fetch_types: false,
    types: arrayTypes,
    // In seconds. By default the pause between attempts grows to 20 s, although the database may be back long before.
    // equivalent mutant (condition, comparison, literal): only the pause before a connection is opened again changes
    backoff: (retries: number) => (retries === 0 ? 0 : 0.2),
    ssl: readTls(address),
    onnotice: () => {},
    connection: {
      ...sessionSettings,
      ...settings,
      application_name: name,
      ...(role !== undefined && { role }),
      ...(statementTimeoutMs !== undefined && { statement_timeout: statementTimeoutMs }),
      ...(lockTimeoutMs !== undefined && { lock_timeout: lockTimeoutMs }),
      ...(idleTimeoutMs !== undefined && { idle_session_timeout: idleTimeoutMs }),
    },
    ...more,
  };
  // The driver takes some parameters only from a URL. It cannot read a URL with a socket or an IPv6 address, and it
  // does not decode the name of the database.
  const { host, port, database } = address;
  const plain = withoutTls(address);
  if (!isSocketFolder(host) && !isIPv6(host))
    return postgres(formatUrl(plain), { ...all, database } as postgres.Options<{}>);
  const url = formatUrl({ ...plain, host: "localhost" });
  // The driver cuts a host at its first colon, but not a host in a list.
  const place = isIPv6(host) ? { host: [host], port: [port] } : { host, port };
  return postgres(url, { ...all, ...place, database } as postgres.Options<{}>);
}

/**
 * By type OID: int2[] and int4[] as numbers; int8[], numeric[], text[], varchar[], name[] and uuid[] as strings;
 * bytea[] as buffers, which are only read.
 */
const arrayTypes = {
  integers: {
    to: 1007,
    from: [1005, 1007],
    parse: (text: string) => parseArray(text).map((item) => item && Number(item)),
    serialize: String,
  },
  bytes: {
    to: 1001,
    from: [1001],
    parse: (text: string) => parseArray(text).map((item) => item && Buffer.from(item.slice(2), "hex")),
    serialize: String,
  },
  texts: { to: 1009, from: [1016, 1231, 1009, 1015, 1003, 2951], parse: parseArray, serialize: String },
};

const toParams = (params: readonly unknown[]): never[] =>
  params.map((param) => (Array.isArray(param) ? formatArray(param) : param)) as never[];

function formatArray(items: unknown[]): string {
  const format = (item: unknown): string => (item === null ? "null" : `"${String(item).replace(/["\\]/g, "\\$&")}"`);
  return `{${items.map(format).join()}}`;
}

function parseArray(text: string): (string | null)[] {
  return Array.from(text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|[^,]+/gs), ([item, quoted]) =>
    quoted !== undefined ? quoted.replace(/\\(.)/gs, "$1") : item === "NULL" ? null : item,
  );
}
