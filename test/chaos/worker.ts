// Whether the worker goes on after something was done to it, with a batch that is being minted, deliveries under way, and events
// that have no position yet.
import { setTimeout as sleep } from "node:timers/promises";
import type { Stage } from "./environment.ts";

type Work = "mint" | "deliver" | "sequence";
// afterMs null: not within the time.
export type Resumed = { fault: string; work: Work; afterMs: number | null };
// Each counts up while there is something to do, and something always is.
type Progress = Record<Work, number>;

const batchSize = 20_000;
// By then what was under way in the database has ended, and what is counted is new.
const settledAfterMs = 300;

// Comes back when a batch is in the middle. What is called then says how long each kind of work has paused since.
export async function watchWorker(
  stage: Stage,
  fault: string,
  withinMs: number,
): Promise<(since: number) => Promise<Resumed[]>> {
  const batch = await stage.submit("A", batchSize);
  while ((await readProgress(stage, batch)).mint === 0) await sleep(10);
  return async (since) => {
    await sleep(settledAfterMs);
    const before = await readProgress(stage, batch);
    const resumed = new Map<Work, number>();
    while (resumed.size < 3 && performance.now() < since + withinMs) {
      await sleep(50);
      const now = await readProgress(stage, batch);
      for (const work of ["mint", "deliver", "sequence"] as const) {
        if (now[work] > before[work] && !resumed.has(work)) resumed.set(work, performance.now() - since);
      }
    }
    return (["mint", "deliver", "sequence"] as const).map((work) => ({
      fault,
      work,
      afterMs: resumed.get(work) ?? null,
    }));
  };
}

async function readProgress({ owner, receiver }: Stage, batch: string): Promise<Progress> {
  const [row] = await owner.rows<{ mint: number; sequence: number }>(
    "select b.minted_count as mint, s.high_seq::int as sequence from core.batch b, core.sequencer s where b.external_id = $1",
    [batch],
  );
  return { ...row!, deliver: receiver.events.size };
}
