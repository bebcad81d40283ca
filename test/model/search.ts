// Executes many runs at the same time on one service. fast-check makes its runs one after the other, so each lane here
// is a separate fast-check search with its own seed. Runs share no coupons.
import fc from "fast-check";
import { Mismatch, execute } from "./execute.ts";
import { runOf, type Run } from "./steps.ts";
import { createTotals, type Totals } from "./totals.ts";
import type { Environment } from "./environment.ts";

// firstLane: the number of the first lane. The same seed with other lanes makes other runs.
export type Plan = {
  runs: number;
  seed: number;
  lanes?: number;
  firstLane?: number;
  withinMs?: number;
  replay?: { seed: number; path: string };
};
export type Found = { runs: number; steps: number; shrinks: number; totals: Totals; failures: string[] };

const defaultLanes = 24;

export async function search(
  environment: Environment,
  { runs, seed, lanes = defaultLanes, firstLane = 0, withinMs, replay }: Plan,
): Promise<Found> {
  const totals = createTotals();
  const found: Found = { runs: 0, steps: 0, shrinks: 0, totals, failures: [] };
  const deadline = performance.now() + (withinMs ?? Infinity);
  let isOver = false;

  async function searchLane(lane: number): Promise<void> {
    const settings: fc.Parameters<[Run]> = {
      seed: replay?.seed ?? seedOf(seed, firstLane + lane),
      numRuns: Math.floor(runs / lanes) + (lane < runs % lanes ? 1 : 0),
      ...(replay !== undefined && { path: replay.path, endOnFailure: true }),
    };
    let isShrinking = false;
    const details = await fc.check(
      fc.asyncProperty(runOf(environment.setup), async (run) => {
        // After a mismatch the other lanes stop. A started run is completed: fast-check's own time limit would leave it
        // running in the background, and its amounts would be missing in the totals.
        if (!isShrinking && (isOver || performance.now() > deadline)) return;
        try {
          const { steps, coupons } = await execute(environment, run);
          totals.add(coupons);
          if (isShrinking) return;
          found.runs += 1;
          found.steps += steps;
        } catch (error) {
          isOver = isShrinking = true;
          throw error;
        }
      }),
      settings,
    );
    found.shrinks += details.numShrinks;
    if (!details.failed) return;
    const { seed: failedSeed, counterexamplePath } = details;
    const options = `--variant ${environment.setup.variant} --replay=${failedSeed}:${counterexamplePath}`;
    found.failures.push(
      `after ${details.numRuns} runs of the lane and ${details.numShrinks} shrinks\n` +
        `${messageOf(details.errorInstance)}\n  repeat with: npm run model -- ${options}`,
    );
  }

  await Promise.all(
    Array.from({ length: replay === undefined ? Math.min(lanes, runs) : 1 }, (_, lane) => searchLane(lane)),
  );
  return found;
}

// Far from the lanes of the next seed.
const seedOf = (seed: number, lane: number) => (Math.imul(seed, 0x9e3779b1) + lane) | 0;

function messageOf(error: unknown): string {
  if (error instanceof Mismatch) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
