// The part of the model that is in every `npm test`: 300 runs a variant, a fresh seed each time. More of them: npm run model.
import type { Test } from "tap";
import { search } from "./search.ts";
import { compareTotals } from "./totals.ts";
import { openWorld } from "./world.ts";

// On a machine that is busy with other things there are fewer runs, and not a timeout.
const withinMs = 60_000;

export async function compareLives(t: Test, variant: "A" | "B"): Promise<void> {
  const world = await openWorld(t, variant, 150);
  const seed = Date.now() % 1_000_000_000;
  const { runs, steps, totals, failures } = await search(world, { runs: 300, seed, withinMs });
  t.comment(`${runs} runs of ${steps} steps, seed ${seed}`);
  t.strictSame(failures, []);
  if (failures.length === 0) t.strictSame(await compareTotals(t, world, totals), []);
}
