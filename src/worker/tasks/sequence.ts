// The sequencer: gives committed events their positions in the feeds, and ledger entries their business days.
//
// Any number of these may run: the database lets one of them take a step at a time, the others find the place taken and
// come again. A step is one transaction, so one that is cut off has not happened.
import type { SteadyDatabase } from "../../database/reconnecting.ts";

// A tenth of a second of work and less; whoever closes days waits for a step to end.
const stepSize = 1_000;
// How long a committed event waits at most to be looked for. A service that nobody has used for a minute is asked less often.
const busyPauseMs = 100;
const idlePauseMs = 250;
const idleAfterMs = 60_000;

type Step = { sequenced: number; is_drained: boolean };

export function createSequencer({ database, stopping }: { database: SteadyDatabase; stopping: AbortSignal }) {
  let lastFoundAt = performance.now();

  // Until nothing that is committed is left, or somebody else is at it. Gives how many events found their place.
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

  // Until the next look.
  const pauseMs = () => (performance.now() - lastFoundAt < idleAfterMs ? busyPauseMs : idlePauseMs);

  return { sequence, pauseMs };
}
