// What a worker does, without a worker.
import type { Database } from "../../src/database/types.ts";
import { waitUntil } from "./wait-until.ts";

// Sequences every committed event. Waits for another sequencer that is at work.
export async function sequenceEvents(database: Pick<Database, "rows">): Promise<void> {
  const isOver = async () => {
    const [step] = await database.rows<{ is_drained: boolean; sequenced: number }>(
      "select is_drained, sequenced from jobs.sequence_events(10000)",
    );
    return step!.is_drained && step!.sequenced === 0;
  };
  await waitUntil("the sequencer to have nothing left", isOver, { everyMs: 0 });
}

/** Takes one step of the sequencer. Returns how many events it took. */
export async function takeStep(database: Pick<Database, "rows">, limit = 100): Promise<number> {
  const [step] = await database.rows<{ sequenced: number }>("select sequenced from jobs.sequence_events($1)", [limit]);
  return step!.sequenced;
}

/** Analyzes in as many steps as it takes. Returns how many tables. */
export async function analyzeGrownTables(database: Pick<Database, "rows">): Promise<number> {
  let count = 0;
  const isOver = async () => {
    const [step] = await database.rows<{ done: number }>("select jobs.analyze_grown_tables() as done");
    count += step!.done;
    return step!.done === 0;
  };
  await waitUntil("nothing to be left to analyze", isOver, { everyMs: 0 });
  return count;
}
