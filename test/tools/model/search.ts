// Executes many lives at the same time on one service. fast-check makes its runs one after the other, so each lane here
// is a separate fast-check search with its own seed. Lives share no coupons.
import fc from "fast-check";
import { execute, Mismatch } from "./execute.ts";
import { lifeOf, type Life } from "./life.ts";
import type { Service } from "./service.ts";

export type Plan = { lives: number; seed: number; withinMs?: number; replay?: { seed: number; path: string } };
export type Found = { lives: number; steps: number; failures: string[] };

const lanes = 24;
// Then the best counterexample so far must do.
const shrinkWithinMs = 180_000;

export async function search(service: Service, { lives, seed, withinMs = Infinity, replay }: Plan): Promise<Found> {
  const found: Found = { lives: 0, steps: 0, failures: [] };
  let deadline = performance.now() + withinMs;
  let isOver = false;

  async function searchLane(lane: number): Promise<void> {
    const settings: fc.Parameters<[Life]> = {
      seed: replay?.seed ?? seedOf(seed, lane),
      numRuns: Math.floor(lives / lanes) + (lane < lives % lanes ? 1 : 0),
      ...(replay !== undefined && { path: replay.path, endOnFailure: true }),
    };
    let isShrinking = false;
    const property = fc.asyncProperty(lifeOf(service.setup), async (life) => {
      // After a mismatch the other lanes stop. A life that has begun is completed: fast-check's own time limit would
      // leave it running in the background.
      if (performance.now() > deadline || (isOver && !isShrinking)) return;
      try {
        await execute(service, life);
        if (isShrinking) return;
        found.lives += 1;
        found.steps += life.steps.length;
      } catch (error) {
        // One mismatch is enough.
        if (isOver && !isShrinking) return;
        if (!isOver) deadline = performance.now() + shrinkWithinMs;
        isOver = isShrinking = true;
        throw error;
      }
    });
    const { failed, numShrinks, errorInstance, ...details } = await fc.check(property, settings);
    if (!failed) return;
    const options = `--variant ${service.setup.variant} --replay=${details.seed}:${details.counterexamplePath}`;
    found.failures.push(
      `after ${numShrinks} shrinks\n${describe(errorInstance)}\n  repeat with: npm run model -- ${options}`,
    );
  }

  const count = replay === undefined ? Math.min(lanes, lives) : 1;
  await Promise.all(Array.from({ length: count }, (_, lane) => searchLane(lane)));
  return found;
}

// Far from the lanes of the next seed.
const seedOf = (seed: number, lane: number) => (Math.imul(seed, 0x9e3779b1) + lane) | 0;

function describe(error: unknown): string {
  if (error instanceof Mismatch) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
