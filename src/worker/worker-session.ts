// The session that shows other workers that this one lives. It holds the lock of its number (jobs.join_workers), and
// each lease names the number. When the session ends, the server frees the lock, and others take over at once.
//
// This worker stops using its leases before that happens. It notices a lost connection at once, and a silent one after
// `silentWithinMs`. The server ends a silent session only after `idleTimeoutMs`, because the last query may have
// arrived just before the session went silent. A process that was frozen for longer may still try to write. The
// database refuses such writes, because each lease has a holder.
import type { Logger } from "../common/log.ts";
import { startHeartbeat, type Heartbeat } from "../database/heartbeat.ts";
import type { Options, Session } from "../database/types.ts";

/** number: changes with each session. lost: aborts when leases under this number no longer count. */
export type WorkerSession = { number: number; lost: AbortSignal };
/** Returns null if there is no session at the moment; then nothing can be leased. */
export type GetWorkerSession = () => WorkerSession | null;

/** The server frees the lock of a worker that vanished after this time. */
export const idleTimeoutMs = 8_000;

export type WorkerSessionParts = {
  open: (options: Pick<Options, "name" | "idleTimeoutMs" | "settings">) => Session;
  /** Other connections of this program are silent. */
  onSilent: () => void;
  log: Logger;
};

export function keepWorkerSession({ open, onSilent, log }: WorkerSessionParts): Heartbeat & { get: GetWorkerSession } {
  let current: (WorkerSession & { end(): void }) | null = null;
  let wasLost = false;

  const heartbeat = startHeartbeat({
    // A number need not wait for a synchronous standby: leases, which name it, do.
    open: () => open({ name: "coupon worker session", idleTimeoutMs, settings: { synchronous_commit: "local" } }),
    begin: joinWorkers,
    onBegin(number) {
      const ending = new AbortController();
      current = { number, lost: ending.signal, end: () => ending.abort() };
      if (wasLost) log.info("the worker has a session again");
    },
    onEnd() {
      current?.end();
      current = null;
      wasLost = true;
      log.warn("the worker lost its session; it continues in a new one");
    },
    onSilent,
  });
  return { get: () => current, stop: heartbeat.stop };
}

export async function joinWorkers(session: Session): Promise<number> {
  const [row] = await session.rows<{ worker: number }>("select jobs.join_workers() as worker");
  return row!.worker;
}
