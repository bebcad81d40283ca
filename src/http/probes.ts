// Health checks; they need no signature. healthz: the process runs. readyz: the database answers, and its version fits
// this program.
import { beforeDeadline } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";
import type { Page } from "./page.ts";
import type { Answer } from "./problem.ts";

export type Readiness = (deadline: number) => Promise<boolean>;

export const probeNames: ReadonlySet<string> = new Set(["healthz", "readyz"]);

const readyWithinMs = 1_500;

export function createProbes(readiness: Readiness): Page[] {
  const succeed = (): Answer => ({ status: 200, code: null, body: '{"ok":true}' });
  // Probes that come during a check get its result. They are unsigned, and each would take a place in the tills' queue.
  let checking: Promise<void> | null = null;
  const check = () =>
    (checking ??= checkReadiness(readiness).finally(() => {
      checking = null;
    }));
  return [
    { operation: "healthz", method: "GET", path: "/healthz", respond: succeed },
    {
      operation: "readyz",
      method: "GET",
      path: "/readyz",
      async respond() {
        await check();
        return succeed();
      },
    },
  ];
}

async function checkReadiness(readiness: Readiness): Promise<void> {
  const deadline = performance.now() + readyWithinMs;
  const isReady = await beforeDeadline(readiness(deadline), deadline).catch((error: unknown) => {
    throw new Unavailable(error instanceof Error ? error.message : String(error), { cause: error });
  });
  if (!isReady) throw new Unavailable("the database is not at the version of this program: run the migrations");
}
