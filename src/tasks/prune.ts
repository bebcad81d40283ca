// Removes nonces that can no longer be replayed, a block at a time, so that no statement holds many rows long.
import type { SteadyDatabase } from "../steady.ts";

const block = 10_000;

export function createPruner({ database, stopping }: { database: SteadyDatabase; stopping: AbortSignal }) {
  return async function prune(): Promise<void> {
    let removed = block;
    while (removed === block && !stopping.aborted) {
      const [row] = await database.rows<{ removed: number }>("select jobs.prune_nonces($1) as removed", [block]);
      removed = row?.removed ?? 0;
    }
  };
}
