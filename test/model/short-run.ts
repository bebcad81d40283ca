// The part of the model test that every `npm test` runs: 300 runs per variant, with a new seed each time. `npm run
// model` makes more.
import type { Test } from "tap";
import { search } from "./search.ts";
import { compareTotals } from "./totals.ts";
import { openEnvironment } from "./environment.ts";

// On a busy machine there are fewer runs instead of a timeout.
const withinMs = 60_000;

export async function runShort(t: Test, variant: "A" | "B"): Promise<void> {
  const environment = await openEnvironment(t, variant, 150);
  const seed = Date.now() % 1_000_000_000;
  const { runs, steps, totals, failures } = await search(environment, { runs: 300, seed, withinMs });
  t.comment(`${runs} runs of ${steps} steps, seed ${seed}`);
  t.strictSame(failures, [], `seed ${seed}`);
  if (failures.length > 0) return;
  t.strictSame(await compareTotals(t, environment, totals), [], `feed and statement, seed ${seed}`);
}
