// The gate's connections to the database, divided into five lanes. Calls that wait for each other's locks, or for a
// DBA's, can only fill the patient lane, and calls that take long only the long one.
//   quick: groups of calls. SQL never waits for a lock here.
//   lookup: access keys that this process has not seen. Anyone can invent such keys, so their lookups have a short
//     queue to themselves.
//   long: one call at a time that may take long or return much, such as a pull of events. SQL never waits for a lock
//     here either.
//   patient: one call at a time, which may wait for locks.
//   bulk: pages of downloads. They take longer than calls, and calls must not queue behind them.
import { isConnectionError, sqlState } from "../database/connect.ts";
import { createReplaceable } from "../database/replaceable.ts";
import type { Database } from "../database/types.ts";
import { createLane, type Lane, type LaneLoad } from "./lane.ts";
import type { TenantId } from "./queue.ts";
import type { Logger } from "../common/log.ts";
import { Unavailable } from "../common/unavailable.ts";

export type LaneName = (typeof laneNames)[number];
const laneNames = ["quick", "lookup", "long", "patient", "bulk"] as const;
/**
 * The lane of a statement, and the tenant whose share it uses. isBehind: it may use the connection of a statement of
 * this tenant that runs.
 */
export type Place = { lane: LaneName; tenantId: TenantId; isBehind?: boolean };
export type Connections = {
  /** Runs one statement. Rejects with Unavailable when trying again later may help. */
  rows<T>(place: Place, deadline: number, text: string, parameters: unknown[]): Promise<T[]>;
  /** Sends a statement twice on one connection. The server begins the second as soon as the first has committed. */
  twice<T>(place: Place, deadline: number, text: string, parameters: unknown[]): Promise<[T[], T[]]>;
  load(): Record<LaneName, LaneLoad>;
  /** Gives up all connections, with everything that runs on them or waits for them. Later statements use new ones. */
  reconnect(): void;
  end(): Promise<void>;
};
export type ConnectionParts = { connect: () => Database; log: Logger; maxWaiting: number; hungAfterMs: number };

// A tenant gets at most two thirds of a lane.
const widths: Record<LaneName, number> = { quick: 10, lookup: 2, long: 3, patient: 6, bulk: 3 };
export const connectionCount = Object.values(widths).reduce((sum, width) => sum + width, 0);
const mostWaitingLookups = 250;

type Pool = { database: Database; lanes: Record<LaneName, Lane> };

export function openConnections({ connect, log, maxWaiting, hungAfterMs }: ConnectionParts): Connections {
  const pools = createReplaceable(openPool, ({ database }) => database.end().catch(() => {}));

  function openPool(abandoned: AbortSignal): Pool {
    const lanes = byLane((name) =>
      createLane({
        width: widths[name],
        widthOfTenant: Math.floor((widths[name] * 2) / 3),
        maxWaiting: name === "lookup" ? mostWaitingLookups : maxWaiting,
        hungAfterMs,
        abandoned,
      }),
    );
    return { database: connect(), lanes };
  }

  // Gives up a pool of the driver that no longer settles its promises, with everything that waits in it.
  function giveUp(hung: Pool): void {
    if (pools.current() !== hung) return;
    log.warn("the database connections hang; opening new ones");
    pools.replace(hung);
  }

  type Work<T> = (database: Database, pipe: object) => Promise<T>;
  async function run<T>({ lane, tenantId, isBehind }: Place, deadline: number, work: Work<T>): Promise<T> {
    const current = pools.current();
    try {
      return await current.lanes[lane].run(
        tenantId,
        deadline,
        (pipe) => work(current.database, pipe),
        () => giveUp(current),
        isBehind,
      );
    } catch (error) {
      throw mayWorkLater(error) ? new Unavailable((error as Error).message, { cause: error }) : error;
    }
  }

  return {
    rows: <T>(place: Place, deadline: number, text: string, parameters: unknown[]) =>
      run(place, deadline, (database, pipe) => database.rows<T>(text, parameters, pipe)),
    twice: <T>(place: Place, deadline: number, text: string, parameters: unknown[]) =>
      run(place, deadline, (database, pipe) => {
        const send = () => database.rows<T>(text, parameters, pipe);
        return Promise.all([send(), send()]);
      }),
    load: () => byLane((name) => pools.current().lanes[name].load()),
    reconnect: () => giveUp(pools.current()),
    end: () => pools.current().database.end(),
  };
}

function byLane<T>(make: (name: LaneName) => T): Record<LaneName, T> {
  return Object.fromEntries(laneNames.map((name) => [name, make(name)])) as Record<LaneName, T>;
}

// No connection (08), lock or statement timeout (55P03, 57014), deadlock or serialization failure (40), out of
// resources (53), shutdown (57P), read-only after a failover (25006). Everything else is a bug.
function mayWorkLater(error: unknown): boolean {
  return (
    isConnectionError(error) ||
    isUnreachableCell(error) ||
    /^(08|40|53|57P|57014|55P03|25006)/.test(sqlState(error) ?? "")
  );
}

/** Whether a statement failed because the disk of the database is full. */
export function isDiskFull(error: unknown): boolean {
  return sqlState(error instanceof Unavailable ? error.cause : error) === "53100";
}

/** Whether a router could not reach the cell, or lost it: PL/Proxy reports that as an internal error. */
export function isUnreachableCell(error: unknown): boolean {
  return sqlState(error) === "XX000" && (error as Error).message.startsWith("PL/Proxy function ");
}

/** Whether a statement itself caused its error, and not a server that is unreachable or overloaded. */
export function isCausedByStatement(error: unknown): boolean {
  const cause = error instanceof Unavailable ? error.cause : error;
  const state = sqlState(cause);
  return state !== null && !/^(08|53|57P|25006)/.test(state) && !isUnreachableCell(cause);
}
