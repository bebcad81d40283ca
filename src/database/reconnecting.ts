// A database for programs that run for months. A call of the driver can hang for ever, for example if the server goes
// away during a connect. After a deadline longer than any statement_timeout, the call fails and later calls use new
// connections.
import { beforeDeadline } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";
import type { Database } from "./types.ts";

export type ReconnectingDatabase = Pick<Database, "rows" | "end">;

export function openReconnecting(connect: () => Database, deadlineMs = 30_000): ReconnectingDatabase {
  let current = connect();

  async function rows<T>(text: string, params?: readonly unknown[]): Promise<T[]> {
    const used = current;
    try {
      return await beforeDeadline(used.rows<T>(text, params), performance.now() + deadlineMs);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      // Several calls may hang on the same connections: the first one replaces them.
      if (current === used) {
        current = connect();
        used.end().catch(() => {});
      }
      throw new Error("the database did not answer in time", { cause: error });
    }
  }

  return { rows, end: () => current.end() };
}
