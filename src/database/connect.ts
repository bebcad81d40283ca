// Opens connections to the database. They go to the server that takes writes, if DATABASE_URL names several.
//
// The driver's pool rotates through its connections. So each connection is a driver instance, and pool.ts pools them.
// Only this file and driver.ts know the driver.
import postgres from "postgres";
import { type Address, formatUrl, isSought, listServers } from "../config/database-address.ts";
import { beforeDeadline } from "../common/deadline.ts";
import { openDriver, type DriverOptions } from "./driver.ts";
import { createPool } from "./pool.ts";
import { createFinder, followPrimary, type Connection, type Find, type Primary } from "./primary.ts";
import { sessionSettings } from "./session-settings.ts";
import { readTls, withoutTls } from "./tls.ts";
import type { Database, Options, Session } from "./types.ts";

// Where the server finds that a prepared statement is gone, or that its columns or those of a function have changed.
const outdated = new Set(["FetchPreparedStatement", "RevalidateCachedQuery", "tupledesc_match"]);

/** Opens up to `max` connections (10 by default), each when it is first needed. */
export function connect(address: Address, options: Options): Database {
  return createPool({
    max: options.max ?? 10,
    // max_pipeline counts the statements that wait for the first one's answer. With 1, the driver would send the next
    // only after both are answered.
    open: (onLost) => open(address, options, { max: 1, max_pipeline: 2, onclose: onLost }),
    // The driver keeps the error of a lost connection and would fail the next statement with it.
    isOutdated: (error) => error instanceof postgres.PostgresError && outdated.has(error.routine ?? ""),
    isSpent: (error) => /CONNECTION_CLOSED|ECONNRESET|EPIPE/.test(String((error as { code?: unknown }).code)),
  });
}

export function openSession(address: Address, options: Options): Session {
  const lost = new AbortController();
  // By default the driver closes connections of a certain age, even in the middle of a transaction.
  const connection = open(address, options, {
    max: 1,
    max_lifetime: null,
    onclose: () => lost.abort(),
    onnotify: options.onNotify,
  });
  const check = (): void => {
    if (lost.signal.aborted) throw new Error("the connection to the database was lost");
  };
  return {
    ...connection,
    lost: lost.signal,
    async rows<T>(text: string, params?: readonly unknown[]) {
      check();
      return connection.rows<T>(text, params);
    },
    async run(text) {
      check();
      await connection.run(text);
    },
  };
}

const finders = new WeakMap<Address, Find>();

/** Returns the server to connect to now. Only if the address names several, it is asked for. */
async function findServer(address: Address): Promise<Address> {
  if (!isSought(address)) return address;
  const find = finders.get(address) ?? createFinder(address, { ask: askPrimary, isConnectionError });
  finders.set(address, find);
  return find();
}

async function askPrimary(server: Address): Promise<Primary | null> {
  const session = openSession(server, { name: "coupon find primary", statementTimeoutMs: 2_000 });
  try {
    const asking = session.rows<{ timeline: string | null; cell: string }>(
      `select case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline,
              coalesce(nullif(current_setting('coupon.cell', true), ''), '1') as cell`,
    );
    // A server that closes each connection: the driver would try forever.
    const [row] = await beforeDeadline(asking, performance.now() + 3_000);
    const { timeline, cell } = row!;
    return timeline === null ? null : { timeline: parseInt(timeline, 16), cell: Number(cell) };
  } finally {
    void session.end();
  }
}

/** How graphile-worker connects, which uses another driver (pg). That one knows one host, so it asks for the server. */
export function describeConnection(address: Address, role: string) {
  const [server] = listServers(address) as [Address];
  // pg adds the host that it connects to.
  const { host: _, ...tls } = readTls(server) || {};
  const connection = { connectionString: formatRoleUrl(server, role), ssl: readTls(server) && tls };
  return { connection, findServer: () => findServer(address) };
}

/**
 * Returns the URL of a server for pg. It has no parameters for TLS: that driver gets
 * them by readTls. The connection acts as `role`.
 */
export function formatRoleUrl(address: Address, role: string): string {
  // Jobs are wake-up calls: they need not wait for a synchronous standby, and nothing here could cancel that wait.
  const options = Object.entries({ ...sessionSettings, synchronous_commit: "local", role })
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
  // Codes of the driver, and ours.
  /^(CONNECT_TIMEOUT|CONNECTION_\w+|COMMIT_NOT_REPLICATED)$/,
  // Codes of the system.
  /^E(CONNREFUSED|CONNRESET|PIPE|NOENT|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)$/,
  // Codes of the server: connection exceptions, shutdowns, too many connections.
  /^(08\w{3}|57P0[123]|53300)$/,
];

/**
 * Whether the server could not be reached or went away, or a commit is perhaps not on the synchronous standby, so that
 * the caller may try again.
 */
export function isConnectionError(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== "string") return error instanceof AggregateError && error.errors.some(isConnectionError);
  return connectionErrors.some((codes) => codes.test(code));
}

function open(address: Address, options: Options, more: DriverOptions): Connection {
  if (!isSought(address)) return openDriver(address, options, more);
  return followPrimary({
    find: () => findServer(address),
    openAt: (server, onclose) => openDriver(server, options, { ...more, onclose }),
    onLost: more.onclose,
    isReadOnly: (error) => sqlState(error) === "25006",
  });
}
