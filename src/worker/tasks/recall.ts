// Voids the unused coupons of recalled batches, in the order of their numbers. Then it waits for the locks that it
// found on the way: a lock that ends without a confirm voids its coupon (rules.free_coupon), and the recall counts it.
// A killed worker loses at most a step that was not committed.
import { setTimeout as sleep } from "node:timers/promises";
import { createBatchJobs, type BatchLease, type BatchParts, type DueBatch } from "../batch-jobs.ts";

// Coupon numbers per transaction. While other sessions write events, usually tills, steps are small, and after each one
// comes a pause of `pausePerBusyStep` times its duration.
const stepSize = { quiet: 500, busy: 25 };
const pausePerBusyStep = 9;
// Another session holds the next coupon.
const heldUpPauseMs = 100;
// Batches that one process recalls at once.
const maxBatchesAtOnce = 1;

type Step = { is_over: boolean; is_held_up: boolean; first_seq: string; last_seq: string };

export function createRecaller(parts: BatchParts) {
  const { database } = parts;
  const jobs = createBatchJobs(parts, maxBatchesAtOnce);

  /** Returns due batches in the order of jobs.list_due_recalls, at most as many as this process has free places. */
  async function listDue(): Promise<DueBatch[]> {
    const places = jobs.countPlaces();
    if (places <= 0) return [];
    return database.rows<DueBatch>("select tenant_id, batch_id from jobs.list_due_recalls($1)", [places]);
  }

  const recall = (due: DueBatch) =>
    jobs.run(due, async (lease) => {
      const [leased] = await database.rows<{ is_mine: boolean }>(
        "select jobs.lease_recall($1, $2, $3, $4) as is_mine",
        [lease.tenant_id, lease.batch_id, lease.session.number, lease.holder],
      );
      // false: finished, or leased to another worker
      return !leased!.is_mine || recallSlice(lease);
    });

  /** Returns true if there is nothing more to do now, or another worker has taken the batch over. */
  async function recallSlice({ tenant_id, batch_id, holder, isOver }: BatchLease): Promise<boolean> {
    let lastSeq: string | null = null;
    let isBusy = true;
    for (;;) {
      const startedAt = performance.now();
      const [step]: Step[] = await database.rows<Step>(
        "select is_over, is_held_up, first_seq, last_seq from jobs.recall_chunk($1, $2, $3, $4)",
        [tenant_id, batch_id, holder, isBusy ? stepSize.busy : stepSize.quiet],
      );
      if (step!.is_over) return true;
      if (isOver()) return false;
      isBusy = step!.first_seq !== lastSeq;
      lastSeq = step!.last_seq;
      if (step!.is_held_up) await sleep(heldUpPauseMs);
      else if (isBusy) await sleep((performance.now() - startedAt) * pausePerBusyStep);
    }
  }

  return { listDue, recall };
}
