// A database for programs that run for months. A call of the driver can hang for ever, for example if the server goes
// away during a connect. After a deadline longer than any statement_timeout, or when somebody else notices that the
// connections are dead, the calls fail and later calls use new connections.
import { beforeDeadline } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";
import type { Database } from "./types.ts";

export type ReconnectingDatabase = Pick<Database, "rows" | "end">;

type Connected = { database: Database; abandoned: AbortController };

export function openReconnecting(
  connect: () => Database,
  deadlineMs = 30_000,
): ReconnectingDatabase & { reconnect(): void } {
  const open = (): Connected => ({ database: connect(), abandoned: new AbortController() });
  let current = open();

  // Several calls may hang on the same connections: the first one replaces them.
  function replace(used: Connected): void {
    if (current !== used) return;
    current = open();
    used.abandoned.abort();
    used.database.end().catch(() => {});
  }

  async function rows<T>(text: string, params?: readonly unknown[]): Promise<T[]> {
    const used = current;
    try {
      const running = used.database.rows<T>(text, params);
      return await beforeDeadline(running, performance.now() + deadlineMs, used.abandoned.signal);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      replace(used);
      throw new Error("the database did not answer in time", { cause: error });
    }
  }

  return { rows, end: () => current.database.end(), reconnect: () => replace(current) };
}
