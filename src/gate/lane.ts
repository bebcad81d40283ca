// A lane has a limited number of places, each of them a connection. A task takes a place, or goes behind the one task
// that runs at a place of its tenant, if it may. The others wait in a queue.
//
// No tenant takes the whole lane: it has at most `widthOfTenant` places. Tasks of other tenants pass those that wait
// for a place of their tenant.
import { createQueue, type Entry, type TenantId } from "./queue.ts";

export type Lane = {
  /**
   * Runs `work` as soon as there is room. Rejects with Unavailable when the queue is full or the deadline passes. Work
   * that is still queued at its deadline never starts; work that runs goes on unwatched and keeps its place until it
   * ends. `onHung` is called if no task of a place ends for `hungAfterMs`. When `abandoned` aborts, all of it is
   * rejected. `work` gets the place, which is the same object for tasks that share it.
   */
  run<T>(
    tenantId: TenantId,
    deadline: number,
    work: (place: object) => Promise<T>,
    onHung: () => void,
    isBehind?: boolean,
  ): Promise<T>;
  load(): LaneLoad;
};

/** busy and width count places. */
export type LaneLoad = { busy: number; waiting: number; width: number };

type Task = { run: (place: object) => Promise<unknown>; onHung: () => void };
type Place = { tenantId: TenantId; running: number; onHung: () => void; watchdog?: NodeJS.Timeout };

export type LaneParts = {
  width: number;
  widthOfTenant: number;
  maxWaiting: number;
  hungAfterMs: number;
  abandoned?: AbortSignal;
};

export function createLane({ width, widthOfTenant, maxWaiting, hungAfterMs, abandoned }: LaneParts): Lane {
  const queue = createQueue<Task, unknown>(maxWaiting);
  const places = new Set<Place>();
  // There is one entry for each tenant, so none is ever removed.
  const busyOf = new Map<TenantId, number>();
  abandoned?.addEventListener("abort", () => queue.failAll("the connection was given up"));

  const countOf = (tenantId: TenantId) => busyOf.get(tenantId) ?? 0;
  const hasRoom = (tenantId: TenantId) =>
    places.size < width && (tenantId === null || countOf(tenantId) < widthOfTenant);
  function takePlace({ tenantId, work: { onHung } }: Entry<Task, unknown>): Place {
    const place = { tenantId, running: 0, onHung };
    places.add(place);
    busyOf.set(tenantId, countOf(tenantId) + 1);
    watch(place);
    return place;
  }

  function watch(place: Place): void {
    clearTimeout(place.watchdog);
    place.watchdog = setTimeout(place.onHung, hungAfterMs);
    place.watchdog.unref();
  }

  function leave(place: Place): void {
    place.running -= 1;
    // The task behind begins only now.
    if (place.running > 0) return watch(place);
    clearTimeout(place.watchdog);
    places.delete(place);
    busyOf.set(place.tenantId, countOf(place.tenantId) - 1);
    beginNext();
  }

  function begin(entry: Entry<Task, unknown>, place = takePlace(entry)): void {
    queue.take(entry);
    place.running += 1;
    const running = entry.work.run(place).finally(() => leave(place));
    running.then(entry.settle, entry.fail);
  }

  // None while anyone waits for a place: with one task behind the other, a place might never become free.
  function findPlaceBehind(tenantId: TenantId): Place | undefined {
    if (queue.size() > 0) return undefined;
    return places.values().find((place) => place.tenantId === tenantId && place.running === 1);
  }

  // One place has become free, so at most one task can begin.
  function beginNext(): void {
    for (const entry of queue.entries()) if (hasRoom(entry.tenantId)) return begin(entry);
  }

  return {
    load: () => ({ busy: places.size, waiting: queue.size(), width }),
    async run<T>(
      tenantId: TenantId,
      deadline: number,
      work: (place: object) => Promise<T>,
      onHung: () => void,
      isBehind = false,
    ) {
      const entry = queue.open(tenantId, { run: work, onHung }, deadline);
      const place = isBehind ? findPlaceBehind(tenantId) : undefined;
      if (place !== undefined) begin(entry, place);
      else if (hasRoom(tenantId)) begin(entry);
      else queue.push(entry);
      return (await entry.outcome) as T;
    },
  };
}
