// A database for programs that run for months: a call of the driver can hang for ever, as when the server goes
// away while a connection is made. Past the deadline, longer than any statement_timeout, the caller gets an
// error and everybody after it new connections.
import type { Database } from "./types.ts";

export type SteadyDatabase = Pick<Database, "rows" | "end">;

export function keepAnswering(connect: () => Database, deadlineMs = 30_000): SteadyDatabase {
  let current = connect();

  async function rows<T>(text: string, params?: readonly unknown[]): Promise<T[]> {
    const used = current;
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error("the database did not answer in time"));
        if (current !== used) return;
        current = connect();
        used.end().catch(() => {});
      }, deadlineMs);
    });
    try {
      return await Promise.race([used.rows<T>(text, params), deadline]);
    } finally {
      clearTimeout(timer);
    }
  }

  return { rows, end: () => current.end() };
}
