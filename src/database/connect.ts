// The only file that knows the driver. It hides what surprises in it:
// - a pool sends one statement at a time on a connection (max_pipeline 0), so that no call waits
//   behind another one's row lock, and a stray BEGIN fails at once;
// - a pool of several connections takes turns among them, so each connection is a driver of its own (pool.ts);
// - it has no deadline of its own: statement_timeout bounds the server, callers bound the rest;
// - its end() may never return, so ours has a hard timer;
// - to learn the types of arrays it runs a query of its own at each connect, and when the server goes
//   away just then, the failure of that query is caught by nobody and ends the process. So that is
//   off, and arrays are written and read here.
import postgres from "postgres";
import { type Address, formatUrl, isSocketFolder } from "../common/database-address.ts";
import { createPool } from "./pool.ts";
import type { Database, Options, Session } from "./types.ts";

const endDeadlineMs = 3_000;

/** Up to `max` connections (10), opened when they are needed. */
export function connect(address: Address, options: Options): Database {
  return createPool({
    max: options.max ?? 10,
    open: (onLost) => wrap(open(address, options, { max: 1, onclose: onLost })),
    // The driver keeps the last words of a server that went away, and would tell them to the first statement after.
    isSpent: (error) => /^(CONNECTION_CLOSED|ECONNRESET|EPIPE)$/.test(String((error as { code?: unknown }).code)),
  });
}

export function openSession(address: Address, options: Options): Session {
  let isLost = false;
  // The driver would end a connection of a certain age, in the middle of our transaction too.
  const sql = open(address, options, {
    max: 1,
    max_lifetime: null,
    onclose: () => {
      isLost = true;
    },
  });
  const database = wrap(sql);
  const check = (): void => {
    if (isLost) throw new Error("the connection to the database was lost");
  };
  return {
    ...database,
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

/** Returns the URL for graphile-worker, which brings its own driver. The connection acts as `role`. */
export function formatRoleUrl(address: Address, role: string): string {
  const options = `-c role=${role} -c search_path=pg_catalog,pg_temp`;
  return formatUrl({ ...address, parameters: { ...address.parameters, options, application_name: role } });
}

/** The five-character code of an error that the server reported, else null. */
export function sqlState(error: unknown): string | null {
  return error instanceof postgres.PostgresError ? error.code : null;
}

/** The DETAIL of an error that the server reported. It may hold values: never log it unread. */
export function sqlDetail(error: unknown): string | null {
  return error instanceof postgres.PostgresError ? (error.detail ?? null) : null;
}

/** Where in the text of a script the server found an error: its 1-based position, or the line in a function's body. */
export function sqlPlace(error: unknown): { position?: number; bodyLine?: number } {
  if (!(error instanceof postgres.PostgresError)) return {};
  if (error.position) return { position: Number(error.position) };
  const line = /PL\/pgSQL function \S+ (?:near|at|on) line (\d+)/.exec(`${error.where ?? ""} ${error.message}`)?.[1];
  return line === undefined ? {} : { bodyLine: Number(line) };
}

/** The server could not be reached or went away: what a caller answers with "try again". */
export function isConnectionError(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code !== "string") return error instanceof AggregateError && error.errors.some(isConnectionError);
  // The driver's own codes, those of the system, and the server's 08, 57P01 to 57P03 and 53300.
  return /^(CONNECT_TIMEOUT|CONNECTION_\w+|E(CONNREFUSED|CONNRESET|PIPE|NOENT|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|AI_AGAIN)|08\w{3}|57P0[123]|53300)$/.test(
    code,
  );
}

function wrap(sql: postgres.Sql): Database {
  // `simple` is missing in the driver's types: without it a statement without parameters is not prepared.
  const prepared = { prepare: true, simple: false } as postgres.UnsafeQueryOptions;
  return {
    async rows<T>(text: string, params: readonly unknown[] = []) {
      return (await sql.unsafe(text, toParams(params), prepared)) as unknown as T[];
    },
    blocks<T>(text: string, params: readonly unknown[], size: number) {
      return sql.unsafe(text, toParams(params), prepared).cursor(size) as unknown as AsyncIterable<T[]>;
    },
    async end() {
      let timer: NodeJS.Timeout | undefined;
      const deadline = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, endDeadlineMs + 500);
      });
      await Promise.race([sql.end({ timeout: endDeadlineMs / 1000 }), deadline]);
      clearTimeout(timer);
    },
  };
}

function open(address: Address, options: Options, more: object): postgres.Sql {
  const { name, role, statementTimeoutMs, lockTimeoutMs } = options;
  const all = {
    max_pipeline: 0,
    connect_timeout: 5,
    fetch_types: false,
    types: arrayTypes,
    // The driver's own pause grows to 20 s, long after the database is back. After an orderly end there is none.
    backoff: (retries: number) => (retries === 0 ? 0 : 0.2),
    onnotice: () => {},
    connection: {
      application_name: name,
      TimeZone: "UTC",
      // Whatever schema somebody was able to make: our statements do not look into it.
      search_path: "pg_catalog, pg_temp",
      // Our statements are short: compiling them, or sharing them out, takes longer than running them.
      jit: "off",
      max_parallel_workers_per_gather: "0",
      ...(role !== undefined && { role }),
      ...(statementTimeoutMs !== undefined && { statement_timeout: statementTimeoutMs }),
      ...(lockTimeoutMs !== undefined && { lock_timeout: lockTimeoutMs }),
    },
    ...more,
  };
  // The driver takes sslmode and the like only from a URL. It cannot read one with a socket, and it leaves the
  // name of the database encoded.
  const { host, port, database } = address;
  if (!isSocketFolder(host)) return postgres(formatUrl(address), { ...all, database } as postgres.Options<{}>);
  const url = formatUrl({ ...address, host: "localhost" });
  return postgres(url, { ...all, host, port, database, ssl: false } as postgres.Options<{}>);
}

/** By the oids of their types: int2[] and int4[]; int8[], numeric[], text[], varchar[], name[], uuid[]. */
const arrayTypes = {
  integers: {
    to: 1007,
    from: [1005, 1007],
    parse: (text: string) => parseArray(text).map((item) => item && Number(item)),
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
