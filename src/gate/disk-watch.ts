// Notices that the disk of the database is full: calls fail with a code that says so. PostgreSQL still answers reads
// then, and a write succeeds if an old page has room for it. So the disk counts as full until no call has failed for
// `quietMs`. Calls must then be tried again, because nothing else shows that there is space.
// The watch is always in one of these modes:
//
//   clear  no call has failed since the last success.
//   full   a call has failed. The first call that succeeds after `quietMs` ends this mode.
//
// The log gets one line for each change of mode, because each refused call already has its own line.
import type { Logger } from "../common/log.ts";

export type DiskWatch = {
  /** Passes the result of a call on, and learns from it. */
  observe<T>(call: Promise<T>): Promise<T>;
  /** Whether a call failed within the last `quietMs`. */
  isFull(): boolean;
  mode(): "clear" | "full";
};
type Parts = { isDiskFull: (error: unknown) => boolean; log: Logger; quietMs?: number };

const defaultQuietMs = 5_000;

export function createDiskWatch({ isDiskFull, log, quietMs = defaultQuietMs }: Parts): DiskWatch {
  // null: clear.
  let failedAt: number | null = null;
  const isQuiet = () => failedAt === null || performance.now() - failedAt >= quietMs;

  return {
    isFull: () => !isQuiet(),
    mode: () => (failedAt === null ? "clear" : "full"),
    async observe(call) {
      try {
        const result = await call;
        if (failedAt !== null && isQuiet()) {
          failedAt = null;
          log.info("the disk of the database has space again");
        }
        return result;
      } catch (error) {
        if (isDiskFull(error)) {
          if (failedAt === null)
            log.error("the disk of the database is full: calls get 503 until there is space again");
          failedAt = performance.now();
        }
        throw error;
      }
    },
  };
}
