// A worker's session without its heartbeat, for tests that call single tasks of a worker.
import type { Address } from "../../src/config/database-address.ts";
import { openSession } from "../../src/database/connect.ts";
import { joinWorkers, type WorkerSession } from "../../src/worker/worker-session.ts";

type Teardown = { teardown(fn: () => Promise<void>): void };
// end: the session ends in an orderly way. Others see at once that the worker is gone.
export type TestWorkerSession = WorkerSession & { end(): Promise<void> };

export async function openWorkerSession(t: Teardown, address: Address): Promise<TestWorkerSession> {
  const session = openSession(address, { name: "coupon test worker session", role: "coupon_worker" });
  t.teardown(() => session.end());
  return { number: await joinWorkers(session), lost: session.lost, end: () => session.end() };
}
