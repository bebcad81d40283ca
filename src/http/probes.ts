// Health checks; they need no signature. healthz: the process runs. readyz: the database answers, and its version fits
// this program.
import { beforeDeadline } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";
import type { Answer } from "./problem.ts";

export type Readiness = (deadline: number) => Promise<boolean>;
export type Probe = { operation: "healthz" | "readyz"; method: "GET"; path: string };

export const probes: readonly Probe[] = [
  { operation: "healthz", method: "GET", path: "/healthz" },
  { operation: "readyz", method: "GET", path: "/readyz" },
];

const readyWithinMs = 1_500;

export async function answerProbe({ operation }: Probe, readiness: Readiness): Promise<Answer> {
  if (operation === "readyz") await checkReadiness(readiness);
  return { status: 200, code: null, body: '{"ok":true}' };
}

async function checkReadiness(readiness: Readiness): Promise<void> {
  const deadline = performance.now() + readyWithinMs;
  const isReady = await beforeDeadline(readiness(deadline), deadline).catch((error: unknown) => {
    throw new Unavailable(error instanceof Error ? error.message : String(error), { cause: error });
  });
  if (!isReady) throw new Unavailable("the database is not at the version of this program: run the migrations");
}
