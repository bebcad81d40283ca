// Health checks; they need no signature. healthz: the process runs. readyz: the database answers, and its version fits
// this program; behind a router, those of at least one cell.
import { beforeDeadline } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";
import type { Page } from "./page.ts";
import type { Answer } from "./problem.ts";

/** otherCells: behind a router, those that are not ready. Their tenants get 503. */
export type Readiness = (deadline: number) => Promise<{ isReady: boolean; otherCells: number[] }>;

export const probeNames: ReadonlySet<string> = new Set(["healthz", "readyz"]);

const readyWithinMs = 1_500;

export function createProbes(readiness: Readiness): Page[] {
  const succeed = (more = {}): Answer => ({ status: 200, code: null, body: JSON.stringify({ ok: true, ...more }) });
  // Probes that come during a check get its result. They are unsigned, and each would take a place in the tills' queue.
  let checking: Promise<number[]> | null = null;
  const check = () =>
    (checking ??= checkReadiness(readiness).finally(() => {
      checking = null;
    }));
  return [
    { operation: "healthz", method: "GET", path: "/healthz", respond: () => succeed() },
    {
      operation: "readyz",
      method: "GET",
      path: "/readyz",
      async respond() {
        const otherCells = await check();
        return succeed(otherCells.length > 0 ? { cells_not_ready: otherCells } : {});
      },
    },
  ];
}

async function checkReadiness(readiness: Readiness): Promise<number[]> {
  const deadline = performance.now() + readyWithinMs;
  const { isReady, otherCells } = await beforeDeadline(readiness(deadline), deadline).catch((error: unknown) => {
    throw new Unavailable(error instanceof Error ? error.message : String(error), { cause: error });
  });
  if (!isReady) throw new Unavailable("the database is not at the version of this program: run the migrations");
  return otherCells;
}
