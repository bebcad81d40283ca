// Deletes old rows in steps: each minute the nonces that can no longer be replayed, each hour the rows that are older
// than their retention.
import type { Config } from "../../common/config.ts";
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import { repeatThrottled } from "../throttle.ts";

const stepSize = 5_000;

export type Retention = Pick<Config, "requestRetentionDays" | "deliveryLogRetentionDays" | "feedRetentionDays">;
type Parts = { database: ReconnectingDatabase; stopping: AbortSignal };

export function createNoncePruner({ database, stopping }: Parts) {
  return async function pruneNonces(): Promise<void> {
    await repeatThrottled(() => count(database, "select jobs.prune_nonces($1) as removed", [stepSize]), stopping);
  };
}

export function createOldRowPruner({ database, stopping, retention }: Parts & { retention: Retention }) {
  return async function pruneOldRows(): Promise<void> {
    const remove = (text: string, days: number) =>
      repeatThrottled(() => count(database, text, [days, stepSize]), stopping);
    await remove("select jobs.prune_requests($1, $2) as removed", retention.requestRetentionDays);
    await remove("select jobs.prune_cancellations($1, $2) as removed", retention.requestRetentionDays);
    await remove("select jobs.prune_attempts($1, $2) as removed", retention.deliveryLogRetentionDays);
    await remove("select jobs.prune_feed($1, $2) as removed", retention.feedRetentionDays);
  };
}

async function count(database: ReconnectingDatabase, text: string, params: unknown[]): Promise<number> {
  const [row] = await database.rows<{ removed: number }>(text, params);
  return row!.removed;
}
