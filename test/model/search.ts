// Many runs beside each other on one service, each in a lane: a lane is a search of fast-check with a seed of its own, as
// fast-check makes its runs one after the other. What one run does to its coupons is no other run's business.
import fc from "fast-check";
import { Departure, play } from "./play.ts";
import { runOf, type Run } from "./steps.ts";
import { createTotals, type Totals } from "./totals.ts";
import type { World } from "./world.ts";

// Lanes are counted from `firstLane`: searches of one seed with other lanes are other runs.
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
  world: World,
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
      fc.asyncProperty(runOf(world.cast), async (run) => {
        // Once somebody has found something, the others need not look on. A run that has begun is played to its end: fast-check's
        // own time limit would leave it to go on unseen, and its money would be in the totals of nobody.
        if (!isShrinking && (isOver || performance.now() > deadline)) return;
        try {
          const { steps, coupons } = await play(world, run);
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
    const how = `seed and path: npm run model -- --variant ${world.cast.variant} --replay ${details.seed}:${details.counterexamplePath}`;
    found.failures.push(
      `after ${details.numRuns} runs of a lane and ${details.numShrinks} shrinks\n${messageOf(details.errorInstance)}\n  ${how}`,
    );
  }

  await Promise.all(
    Array.from({ length: replay === undefined ? Math.min(lanes, runs) : 1 }, (_, lane) => searchLane(lane)),
  );
  return found;
}

// Far from those of the lanes of the next seed.
const seedOf = (seed: number, lane: number) => (Math.imul(seed, 0x9e3779b1) + lane) | 0;

function messageOf(error: unknown): string {
  if (error instanceof Departure) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
