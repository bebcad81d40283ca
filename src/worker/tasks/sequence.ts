// The sequencer: assigns committed events their positions in the feeds, and ledger entries their business days.
//
// Any number of processes may run it. Only one at a time gets the database's lock and takes a step; the others try
// again later. A step is one transaction, so an interrupted step has no effect.
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";

// At most a tenth of a second of work: closing days waits for a step to end.
const stepSize = 1_000;
// The pause between steps: how long a committed event may wait. After a minute without events it is longer.
const busyPauseMs = 100;
const idlePauseMs = 250;
const idleAfterMs = 60_000;

type Step = { sequenced: number; is_drained: boolean };

export function createSequencer({ database, stopping }: { database: ReconnectingDatabase; stopping: AbortSignal }) {
  let lastFoundAt = performance.now();

  /**
   * Takes steps until no committed event is left or another worker has the lock. Returns how many events got a
   * position.
   */
  async function sequence(): Promise<number> {
    let total = 0;
    for (;;) {
      const [step] = await database.rows<Step>("select sequenced, is_drained from jobs.sequence_events($1)", [
        stepSize,
      ]);
      total += step!.sequenced;
      if (step!.sequenced > 0) lastFoundAt = performance.now();
      if (step!.is_drained || step!.sequenced === 0 || stopping.aborted) return total;
    }
  }

  /** The pause before the next step. */
  const pauseMs = () => (performance.now() - lastFoundAt < idleAfterMs ? busyPauseMs : idlePauseMs);

  return { sequence, pauseMs };
}
