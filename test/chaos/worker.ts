// Measures how soon the worker resumes each kind of work after a fault. A batch is being minted, deliveries are
// running, and some events have no position yet.
import { setTimeout as sleep } from "node:timers/promises";
import { waitUntil } from "../support/wait-until.ts";
import type { Environment } from "./environment.ts";

const works = ["mint", "deliver", "sequence"] as const;
type Work = (typeof works)[number];
// afterMs: null when the work did not resume in time.
export type Resumed = { fault: string; work: Work; afterMs: number | null };
// Each number grows while the worker does this work. There is always work to do: the batch of an earlier fault may come
// before this one's.
type Progress = Record<Work, number>;

const batchSize = 20_000;
// After this time, statements that were running in the database have ended, so any progress is new.
const settledAfterMs = 300;

// Resolves when a batch is partly minted. The returned function measures the pause of each kind of work since the
// fault.
export async function watchWorker(
  environment: Environment,
  fault: string,
  withinMs: number,
): Promise<(since: number) => Promise<Resumed[]>> {
  const batch = await environment.submit("A", batchSize);
  const isMinting = async () => {
    const [row] = await environment.owner.rows<{ is_minting: boolean }>(
      "select b.minted_count > 0 as is_minting from core.batch b where b.external_id = $1",
      [batch],
    );
    return row!.is_minting;
  };
  await waitUntil("the worker to mint", isMinting, { everyMs: 10 });
  return async (since) => {
    await sleep(settledAfterMs);
    const before = await readProgress(environment);
    const resumed = new Map<Work, number>();
    while (resumed.size < works.length && performance.now() < since + withinMs) {
      await sleep(50);
      const now = await readProgress(environment);
      for (const work of works)
        if (now[work] > before[work] && !resumed.has(work)) resumed.set(work, performance.now() - since);
    }
    return works.map((work) => ({ fault, work, afterMs: resumed.get(work) ?? null }));
  };
}

async function readProgress({ owner, receiver }: Environment): Promise<Progress> {
  const [row] = await owner.rows<{ mint: number; sequence: number }>(
    `select (select sum(b.minted_count)::int from core.batch b) as mint, s.high_seq::int as sequence
     from core.sequencer s`,
  );
  return { ...row!, deliver: receiver.events.size };
}
