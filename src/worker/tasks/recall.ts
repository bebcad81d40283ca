// Voids the unused coupons of recalled batches, in the order of their numbers. Then it waits for the locks that it
// found on the way: a lock that ends without a confirm voids its coupon (rules.free_coupon), and the recall counts it.
//
// As with minting, the batch's row records the progress and who holds its lease, and a job is only a wake-up call. A
// killed worker loses at most a step that was not committed.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import { noteStuckBatch } from "../stuck-work.ts";
import type { GetWorkerSession } from "../worker-session.ts";
import type { DueBatch } from "./mint.ts";

// Coupon numbers per transaction. While other sessions write events, usually tills, steps are small, and after each one
// comes a pause of `pausePerBusyStep` times its duration.
const stepSize = { quiet: 500, busy: 25 };
const pausePerBusyStep = 9;
// Another session holds the next coupon.
const heldUpPauseMs = 100;
// The time slice of a batch. Then the next one gets the place, so that small batches do not wait for a large one.
const sliceMs = 2_000;
// Batches that one process recalls at once.
const maxBatchesAtOnce = 1;

type Step = { is_over: boolean; is_held_up: boolean; first_seq: string; last_seq: string };
type Parts = { database: ReconnectingDatabase; getSession: GetWorkerSession; stopping: AbortSignal };

export function createRecaller({ database, getSession, stopping }: Parts) {
  let running = 0;

  /** Returns due batches in the order of jobs.list_due_recalls, at most as many as this process has free places. */
  async function listDue(): Promise<DueBatch[]> {
    if (running >= maxBatchesAtOnce || getSession() === null) return [];
    const text = "select tenant_id, batch_id from jobs.list_due_recalls($1)";
    return database.rows<DueBatch>(text, [maxBatchesAtOnce - running]);
  }

  // After an error the lease is kept on purpose: no worker tries again until it expires.
  async function recall({ tenant_id, batch_id }: DueBatch): Promise<void> {
    const session = getSession();
    if (session === null) return;
    running += 1;
    const holder = randomUUID();
    try {
      const lease = [tenant_id, batch_id, session.number, holder];
      const text = "select jobs.lease_recall($1, $2, $3, $4) as is_mine";
      const [leased] = await database.rows<{ is_mine: boolean }>(text, lease);
      if (!leased!.is_mine) return; // finished, or leased to another worker
      const isStopped = () => session.lost.aborted || stopping.aborted;
      if (await recallSlice([tenant_id, batch_id, holder], isStopped)) return;
      await database.rows("select jobs.end_batch_lease($1, $2, $3)", [tenant_id, batch_id, holder]);
    } catch (error) {
      await noteStuckBatch(database, { tenant_id, batch_id }, error);
      throw error;
    } finally {
      running -= 1;
    }
  }

  /** Returns true if there is nothing more to do now, or another worker has taken the batch over. */
  async function recallSlice(lease: unknown[], isStopped: () => boolean): Promise<boolean> {
    const sliceEnd = performance.now() + sliceMs;
    let lastSeq: string | null = null;
    let isBusy = true;
    for (;;) {
      const startedAt = performance.now();
      const [step]: Step[] = await database.rows<Step>(
        "select is_over, is_held_up, first_seq, last_seq from jobs.recall_chunk($1, $2, $3, $4)",
        [...lease, isBusy ? stepSize.busy : stepSize.quiet],
      );
      if (step!.is_over) return true;
      if (performance.now() >= sliceEnd || isStopped()) return false;
      isBusy = step!.first_seq !== lastSeq;
      lastSeq = step!.last_seq;
      if (step!.is_held_up) await sleep(heldUpPauseMs);
      else if (isBusy) await sleep((performance.now() - startedAt) * pausePerBusyStep);
    }
  }

  return { listDue, recall };
}
