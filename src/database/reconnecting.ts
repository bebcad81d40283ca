// A database for programs that run for months. When a call passes a deadline longer than any statement_timeout, or when
// reconnect() says that the connections are dead, running calls fail and later calls use new connections.
import { beforeDeadline } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";
import { createReplaceable } from "./replaceable.ts";
import type { Database } from "./types.ts";

export type ReconnectingDatabase = Pick<Database, "rows" | "end">;

export function openReconnecting(
  connect: () => Database,
  deadlineMs = 30_000,
): ReconnectingDatabase & { reconnect(): void } {
  const connected = createReplaceable(
    (abandoned) => ({ database: connect(), abandoned }),
    ({ database }) => database.end().catch(() => {}),
  );

  async function rows<T>(text: string, params?: readonly unknown[]): Promise<T[]> {
    const used = connected.current();
    try {
      const running = used.database.rows<T>(text, params);
      return await beforeDeadline(running, performance.now() + deadlineMs, used.abandoned);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      connected.replace(used);
      throw new Error("the database did not answer in time", { cause: error });
    }
  }

  return {
    rows,
    end: () => connected.current().database.end(),
    reconnect: () => connected.replace(connected.current()),
  };
}
