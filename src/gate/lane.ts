// A lane runs a limited number of tasks at a time. The others wait in a queue, none of them past its deadline. The
// driver has neither a queue limit nor deadlines, and its promises may never settle.
//
// No tenant takes the whole lane: at most `widthOfTenant` of its tasks run, and it has at most half of the queue. Tasks
// of other tenants pass those that wait for a place of their tenant.
import { beforeDeadline, msUntil } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";

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
/** null: work for no tenant, such as finding a credential. It has no share, only the lane's limits. */
export type TenantId = number | null;

type Tenant = { id: TenantId; busy: number; waiting: number };
type Waiting = { tenant: Tenant; turn: Promise<void>; begin: () => void };

export type LaneParts = {
  width: number;
  widthOfTenant: number;
  maxWaiting: number;
  hungAfterMs: number;
  abandoned?: AbortSignal;
};

export function createLane({ width, widthOfTenant, maxWaiting, hungAfterMs, abandoned }: LaneParts): Lane {
  let busy = 0;
  // In the order of arrival.
  const queue = new Set<Waiting>();
  // Small, and one for each tenant, so none is ever removed.
  const tenants = new Map<TenantId, Tenant>();

  const hasRoom = (tenant: Tenant) => busy < width && (tenant.id === null || tenant.busy < widthOfTenant);
  const mayWait = (tenant: Tenant) =>
    queue.size < maxWaiting && (tenant.id === null || tenant.waiting < maxWaiting / 2);

  function find(tenantId: TenantId): Tenant {
    let tenant = tenants.get(tenantId);
    if (tenant === undefined) tenants.set(tenantId, (tenant = { id: tenantId, busy: 0, waiting: 0 }));
    return tenant;
  }

  function take(tenant: Tenant): void {
    busy += 1;
    tenant.busy += 1;
  }

  // Begins at most one waiting task: a free place is room for one.
  function leave(tenant: Tenant): void {
    busy -= 1;
    tenant.busy -= 1;
    for (const next of queue) {
      if (!hasRoom(next.tenant)) continue;
      take(next.tenant);
      return next.begin();
    }
  }

  function enter(tenant: Tenant, deadline: number): Promise<void> | undefined {
    if (hasRoom(tenant)) {
      take(tenant);
      return undefined;
    }
    if (!mayWait(tenant)) throw new Unavailable("too many requests wait");
    tenant.waiting += 1;
    const waiting = createWaiting(tenant, { deadline, abandoned }, () => {
      queue.delete(waiting);
      tenant.waiting -= 1;
    });
    queue.add(waiting);
    return waiting.turn;
  }

  return {
    load: () => ({ busy, waiting: queue.size, width }),
    async run(tenantId, deadline, work, onHung) {
      const tenant = find(tenantId);
      await enter(tenant, deadline);
      const watchdog = setTimeout(onHung, hungAfterMs);
      watchdog.unref();
      const running = work().finally(() => {
        clearTimeout(watchdog);
        leave(tenant);
      });
      return beforeDeadline(running, deadline, abandoned);
    },
  };
}

type Until = { deadline: number; abandoned: AbortSignal | undefined };

// A place in the queue. `turn` resolves when it begins, and rejects at the deadline or when `abandoned` aborts.
function createWaiting(tenant: Tenant, { deadline, abandoned }: Until, onLeft: () => void): Waiting {
  const { promise: turn, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(giveUp, msUntil(deadline));
  abandoned?.addEventListener("abort", giveUp);
  function leave() {
    clearTimeout(timer);
    abandoned?.removeEventListener("abort", giveUp);
    onLeft();
  }
  function begin() {
    leave();
    resolve();
  }
  function giveUp() {
    leave();
    reject(new Unavailable("gave up in the queue"));
  }
  return { tenant, turn, begin };
}
