// One connection of the driver (postgres.js), without its surprises:
// - By default it sends any number of statements before the first is answered. We send one at a time, so that no call
//   waits behind another call's row lock, and two where the caller asks for it (`pipe` in types.ts).
// - It repeats a statement whose plan is outdated, and then takes the answer of the statement behind it for the
//   repeated one's. So it may not repeat a statement in a pipe; pool.ts does.
// - It has no query deadline. statement_timeout bounds the server; callers bound the rest.
// - Its end() may never return, so ours has a deadline.
// - At each connect it runs a query to learn the array types. If the server goes away at that moment, nothing catches
//   the error and the process ends. So fetch_types is off, and arrays.ts writes and reads arrays.
// - It drops the promise of a cancel. If the server is gone then, that ends the process.
//
// Two things happen while a commit waits for a synchronous standby. Whoever cancels the wait makes the server report a
// success with a warning, although the standby may lack the transaction; so that is an error here. And no time-out of
// the server ends the wait: while the standby is away, statements would take all its connections. So we cancel it.
import { isIPv6 } from "node:net";
import postgres from "postgres";
import { type Address, formatUrl, isSocketFolder } from "../config/database-address.ts";
import { beforeDeadline, watchDeadlines } from "../common/deadline.ts";
import { arrayTypes, toParams } from "./arrays.ts";
import type { Connection } from "./primary.ts";
import { sessionSettings } from "./session-settings.ts";
import { readTls, withoutTls } from "./tls.ts";
import type { Options } from "./types.ts";

const endDeadlineMs = 3_000;
const cancelAtEndMs = 2_500;
// A statement has this much longer than its statement_timeout.
const cancelAfterMs = 500;

export type DriverOptions = {
  max: 1;
  max_pipeline?: number;
  max_lifetime?: null;
  onclose: () => void;
  onnotify?: (() => void) | undefined;
};
// canceller, state: the types of the driver lack them. state is null until the statement is sent.
type Query<T> = Promise<T> & { state?: object | null; canceller?: (query: unknown) => Promise<void> };
type Running = { query: Query<unknown>; isUnreplicated: boolean; deadline: number; watch(): void };

const late = watchDeadlines<Running>(({ query, watch }) => {
  if (query.state) cancel(query);
  else watch();
});
const cancel = (query: Query<unknown>): void => void query.canceller?.(query).catch(() => {});

/** Opens at its first statement, and again after a loss. */
export function openDriver(address: Address, options: Options, more: DriverOptions): Connection {
  // In the order in which they were sent: the server runs the first.
  const running = new Set<Running>();
  const onnotice = ({ routine, code }: postgres.Notice): void => {
    // A router passes a cell's warning on under a name of its own. No other warning of ours has this code.
    const isCancelledWait = routine === "SyncRepWaitForLSN" || (routine === "plproxy_remote_error" && code === "01000");
    // Of one of them, and the driver does not say of which.
    if (isCancelledWait) for (const one of running) one.isUnreplicated = true;
  };
  const sql = createDriver(address, options, { ...more, onnotice });

  function watchFirst(): void {
    const [first] = running;
    if (first === undefined || options.statementTimeoutMs === undefined) return;
    first.deadline = performance.now() + options.statementTimeoutMs + cancelAfterMs;
    late.add(first);
  }

  async function run<T>(query: Query<T>): Promise<T> {
    const one: Running = { query, isUnreplicated: false, deadline: 0, watch: watchFirst };
    running.add(one);
    if (running.size === 1) watchFirst();
    try {
      const result = await query;
      if (one.isUnreplicated) throw new NotReplicated();
      return result;
    } finally {
      running.delete(one);
      late.delete(one);
      watchFirst();
    }
  }

  // Without `simple: false`, which the driver's types lack, a statement without parameters is not prepared.
  const prepared = { prepare: true, simple: false } as postgres.UnsafeQueryOptions;
  return {
    async rows<T>(text: string, params: readonly unknown[] = [], pipe?: object) {
      // The driver repeats only what it calls prepared.
      const onexecute = () => Object.assign(query, { prepared: false });
      const how = pipe === undefined ? prepared : ({ ...prepared, onexecute } as postgres.UnsafeQueryOptions);
      const query = sql.unsafe(text, toParams(params), how);
      return (await run(query)) as unknown as T[];
    },
    async run(text) {
      await run(sql.unsafe(text).simple());
    },
    async end() {
      const ending = sql.end({ timeout: endDeadlineMs / 1_000 });
      // A statement that waits for a standby would keep its server process after the connection is closed.
      const timer = setTimeout(() => running.forEach(({ query }) => query.state && cancel(query)), cancelAtEndMs);
      // Connections that do not close are not an error: the caller could do nothing about it.
      await beforeDeadline(ending, performance.now() + endDeadlineMs + 500).catch(() => {});
      clearTimeout(timer);
    },
  };
}

class NotReplicated extends Error {
  code = "COMMIT_NOT_REPLICATED";
  constructor() {
    super("the transaction is committed, but perhaps not on the synchronous standby: a failover would undo it");
  }
}

function createDriver(address: Address, options: Options, more: object): postgres.Sql {
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
