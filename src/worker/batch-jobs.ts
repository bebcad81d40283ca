// The jobs of one kind that work on batches: a job takes the lease of its batch, works for one time slice, and gives
// the lease back. The batch's row records the progress and who holds the lease (30 s), so a job is only a wake-up call
// that names a batch, and the lease of a killed worker ends with its session.
import { randomUUID } from "node:crypto";
import type { ReconnectingDatabase } from "../database/reconnecting.ts";
import { noteStuckBatch } from "./stuck-work.ts";
import type { GetWorkerSession, WorkerSession } from "./worker-session.ts";

// Then the next batch gets the place, so that small batches do not wait for a large one.
const sliceMs = 2_000;

export type DueBatch = { tenant_id: number; batch_id: number };
export type BatchLease = DueBatch & {
  holder: string;
  session: WorkerSession;
  /** Whether the time slice is over, or this worker must stop. */
  isOver(): boolean;
};
export type BatchParts = { database: ReconnectingDatabase; getSession: GetWorkerSession; stopping: AbortSignal };

/** `most`: the batches that this process works on at once. */
export function createBatchJobs({ database, getSession, stopping }: BatchParts, most: number) {
  let running = 0;

  return {
    /** How many batches more this process can work on now. */
    countPlaces: () => (getSession() === null ? 0 : most - running),

    /**
     * Runs the job of a batch. `work` takes the lease, and returns true if there is nothing more to do now, or another
     * worker has the batch. After an error the lease is kept on purpose: no worker tries again until it expires.
     */
    async run({ tenant_id, batch_id }: DueBatch, work: (lease: BatchLease) => Promise<boolean>): Promise<void> {
      const session = getSession();
      if (session === null) return;
      running += 1;
      const holder = randomUUID();
      const sliceEnd = performance.now() + sliceMs;
      const isOver = () => performance.now() >= sliceEnd || session.lost.aborted || stopping.aborted;
      try {
        if (await work({ tenant_id, batch_id, holder, session, isOver })) return;
        await database.rows("select jobs.end_batch_lease($1, $2, $3)", [tenant_id, batch_id, holder]);
      } catch (error) {
        await noteStuckBatch(database, { tenant_id, batch_id }, error);
        throw error;
      } finally {
        running -= 1;
      }
    },
  };
}
