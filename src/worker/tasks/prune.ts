// Deletes old rows in steps: each minute the nonces that can no longer be replayed, each day the rows that are older
// than their retention, and those of tenants that moved to another cell more than a day ago.
import type { Config } from "../../config/config.ts";
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import { repeatThrottled } from "../throttle.ts";

const stepSize = 5_000;
// 512 blocks are 4 MB, so a step is short on any disk.
const blocksPerStep = 512;
// Each coupon goes with its redemptions, ledger entries and events.
const couponsPerStep = 1_000;

export type Retention = Pick<Config, "requestRetentionDays" | "deliveryLogRetentionDays" | "feedRetentionDays">;
type Parts = { database: ReconnectingDatabase; stopping: AbortSignal };

export function createNoncePruner({ database, stopping }: Parts) {
  const nonces = () => count(database, "select jobs.prune_nonces($1) as removed", [stepSize]);
  return async function pruneNonces(): Promise<void> {
    await repeatThrottled(nonces, stopping);
  };
}

export function createOldRowPruner({ database, stopping, retention }: Parts & { retention: Retention }) {
  // Reads a whole table, in parts. Notes its place, so that a program that starts again goes on there.
  async function pruneTable(table: string, prune: string, days: number): Promise<void> {
    const [start] = await database.rows<{ block: number }>("select jobs.find_prune_start($1)::float8 as block", [
      table,
    ]);
    let from = start!.block;
    const note = (block: number | null) => database.rows("select jobs.note_prune_step($1, $2)", [table, block]);
    await repeatThrottled(async () => {
      const params = [days, stepSize, from, from + blocksPerStep];
      const removed = await count(database, `select ${prune}($1, $2, $3, $4) as removed`, params);
      // After a full step, these blocks may hold more.
      if (removed !== null && removed < stepSize) from += blocksPerStep;
      await note(removed === null ? null : from);
      return removed === null ? 0 : 1;
    }, stopping);
  }

  const { requestRetentionDays, deliveryLogRetentionDays, feedRetentionDays } = retention;
  const feeds = () => count(database, "select jobs.prune_feed($1, $2) as removed", [feedRetentionDays, stepSize]);
  const departed = () => count(database, "select jobs.clear_departed('1 day', $1) as removed", [couponsPerStep]);
  const tasks = [
    () => pruneTable("request", "jobs.prune_requests", requestRetentionDays),
    () => pruneTable("lock_cancellation", "jobs.prune_cancellations", requestRetentionDays),
    () => pruneTable("delivery_attempt", "jobs.prune_attempts", deliveryLogRetentionDays),
    () => repeatThrottled(feeds, stopping),
    () => repeatThrottled(departed, stopping),
  ];
  let isRunning = false;
  return async function pruneOldRows(): Promise<void> {
    // graphile-worker starts a job a second time if it takes longer than four hours.
    if (isRunning) return;
    isRunning = true;
    const errors: unknown[] = [];
    // A task that fails does not stop the others.
    for (const prune of tasks) await prune().catch((error: unknown) => errors.push(error));
    isRunning = false;
    if (errors.length > 0) throw errors[0];
    // An aborted job fails, so another worker repeats it soon and not only the next day.
    stopping.throwIfAborted();
  };
}

async function count(database: ReconnectingDatabase, text: string, params: unknown[]): Promise<number | null> {
  const [row] = await database.rows<{ removed: number | null }>(text, params);
  return row!.removed;
}
