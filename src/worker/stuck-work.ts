// Work that fails because of what is stored for one party. Only that party waits. The database records the failure, so
// the log, the metrics and report.stuck_work name it. Failures of the machine, such as a lost connection, are not
// recorded.
import { sqlState } from "../database/connect.ts";
import type { ReconnectingDatabase } from "../database/reconnecting.ts";

/** A value that was read from the database cannot be used. */
class StoredDataError extends Error {}

/** Runs a computation that can only fail because of what was read from the database. */
export function useStored<T>(compute: () => T): T {
  try {
    return compute();
  } catch (error) {
    throw new StoredDataError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/**
 * Returns the message of an error that the same rows would cause again: of data errors, constraints, and exceptions
 * that our functions raise.
 */
function reasonOf(error: unknown): string | null {
  const isOfRows = error instanceof StoredDataError || /^(22|23|P0)/.test(sqlState(error) ?? "");
  return isOfRows ? (error as Error).message : null;
}

/** `subject`: the date of a statement. Without it: the party itself. */
export type StuckWork = { work: "webhook" | "statement"; tenant_id: number; party_id: number; subject?: string };

export async function noteStuckWork(
  database: ReconnectingDatabase,
  { work, tenant_id, party_id, subject }: StuckWork,
  error: unknown,
): Promise<void> {
  const reason = reasonOf(error);
  if (reason === null) return;
  const text = "select jobs.note_stuck_work($1, $2, $3, $4, $5)";
  await database.rows(text, [work, tenant_id, party_id, subject ?? null, reason]).catch(() => {});
}

export async function noteStuckBatch(
  database: ReconnectingDatabase,
  { tenant_id, batch_id }: { tenant_id: number; batch_id: number },
  error: unknown,
): Promise<void> {
  const reason = reasonOf(error);
  if (reason === null) return;
  await database.rows("select jobs.note_stuck_batch($1, $2, $3)", [tenant_id, batch_id, reason]).catch(() => {});
}
