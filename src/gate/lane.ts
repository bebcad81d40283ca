// A lane runs a limited number of tasks at a time. The others wait in a queue.
//
// No tenant takes the whole lane: at most `widthOfTenant` of its tasks run. Tasks of other tenants pass those that wait
// for a place of their tenant.
import { createQueue, type Entry, type TenantId } from "./queue.ts";

export type Lane = {
  /**
   * Runs `work` as soon as there is room. Rejects with Unavailable when the queue is full or the deadline passes. Work
   * that is still queued at its deadline never starts; work that runs goes on unwatched and keeps its place until it
   * ends. `onHung` is called if that takes longer than `hungAfterMs`. When `abandoned` aborts, all of it is rejected.
   */
  run<T>(tenantId: TenantId, deadline: number, work: () => Promise<T>, onHung: () => void): Promise<T>;
  load(): LaneLoad;
};

export type LaneLoad = { busy: number; waiting: number; width: number };

type Task = { run: () => Promise<unknown>; onHung: () => void };

export type LaneParts = {
  width: number;
  widthOfTenant: number;
  maxWaiting: number;
  hungAfterMs: number;
  abandoned?: AbortSignal;
};

export function createLane({ width, widthOfTenant, maxWaiting, hungAfterMs, abandoned }: LaneParts): Lane {
  const queue = createQueue<Task, unknown>(maxWaiting);
  let busy = 0;
  // There is one entry for each tenant, so none is ever removed.
  const busyOf = new Map<TenantId, number>();
  abandoned?.addEventListener("abort", () => queue.failAll("the connection was given up"));

  const countOf = (tenantId: TenantId) => busyOf.get(tenantId) ?? 0;
  const hasRoom = (tenantId: TenantId) => busy < width && (tenantId === null || countOf(tenantId) < widthOfTenant);
  function count(tenantId: TenantId, change: 1 | -1): void {
    busy += change;
    busyOf.set(tenantId, countOf(tenantId) + change);
  }

  function begin(entry: Entry<Task, unknown>): void {
    queue.take(entry);
    count(entry.tenantId, 1);
    const watchdog = setTimeout(entry.work.onHung, hungAfterMs);
    watchdog.unref();
    const running = entry.work.run().finally(() => {
      clearTimeout(watchdog);
      count(entry.tenantId, -1);
      beginNext();
    });
    running.then(entry.settle, entry.fail);
  }

  // One task has ended, so at most one can begin.
  function beginNext(): void {
    for (const entry of queue.entries()) if (hasRoom(entry.tenantId)) return begin(entry);
  }

  return {
    load: () => ({ busy, waiting: queue.size(), width }),
    async run<T>(tenantId: TenantId, deadline: number, work: () => Promise<T>, onHung: () => void) {
      const entry = queue.open(tenantId, { run: work, onHung }, deadline);
      if (hasRoom(tenantId)) begin(entry);
      else queue.push(entry);
      return (await entry.outcome) as T;
    },
  };
}
