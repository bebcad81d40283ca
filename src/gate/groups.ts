// Batches calls per tenant. Calls that arrive while a group is running form the next group, so one transaction and one
// commit carry many calls. A call that finds its tenant idle starts at once, with the calls that arrived beside it.
//
// A second group starts once half of the calls that are not answered wait, and takes that half. A small group costs
// nearly as much as a large one, so it would not be worthwhile for fewer. It goes to one of two places:
//
//   behind  on the connection of the first. The database begins it as soon as the first has committed, so the two never
//           meet each other's locks, and neither node nor the network keeps the database waiting.
//   beside  on another connection, if commits are slow (commit-time.ts): it runs while the first is flushed to disk. If
//           16 calls wait, it starts at once and takes all of them, for the work of two cores.
import { createQueue, type Entry } from "./queue.ts";

export type Groups<Call, Outcome> = {
  /**
   * Throws or rejects with Unavailable. A call that is still in the queue at its deadline is never sent. A tenant may
   * have half of `maxWaiting`, so that others can wait too.
   */
  run(tenantId: number, call: Call, deadline: number): Promise<Outcome>;
  waiting(): number;
};

export type GroupParts<Call, Outcome> = {
  /** Performs a group; the outcomes are in the order of the calls. */
  send: (tenantId: number, calls: Call[], deadline: number, isBehind: boolean) => Promise<Outcome[]>;
  /** Whether a call made its group fail, so that the group had no effect. Its calls are then sent one by one. */
  isCausedByCall: (error: unknown) => boolean;
  /** Whether a commit takes so long that another group should run meanwhile. */
  areCommitsSlow: () => boolean;
  largest: number;
  maxWaiting: number;
};

type Tenant = { id: number; runningGroups: number; runningCalls: number; isAboutToStart: boolean };

const maxRunningGroups = 2;
// Waiting for a longer queue gains little. Measured at 64 connections: a threshold of 8 instead of 16 lowers the
// throughput by a quarter.
const longQueue = 16;

export function createGroups<Call, Outcome>(parts: GroupParts<Call, Outcome>): Groups<Call, Outcome> {
  const { send, isCausedByCall, areCommitsSlow, largest, maxWaiting } = parts;
  const tenants = new Map<number, Tenant>();
  const queue = createQueue<Call, Outcome>(maxWaiting);

  function takeGroup(tenantId: number, size: number): Entry<Call, Outcome>[] {
    const group = Iterator.from(queue.entriesOf(tenantId)).take(size).toArray();
    for (const entry of group) queue.take(entry);
    return group;
  }

  function start(tenant: Tenant): void {
    const sizeOfNext = () => Math.min(sizeOfDue(tenant, queue.sizeOf(tenant.id)), largest);
    for (let size = sizeOfNext(); size > 0; size = sizeOfNext()) {
      const isBehind = tenant.runningGroups > 0 && queue.sizeOf(tenant.id) < longQueue && !areCommitsSlow();
      tenant.runningGroups += 1;
      tenant.runningCalls += size;
      void perform(tenant.id, takeGroup(tenant.id, size), isBehind).finally(() => {
        tenant.runningGroups -= 1;
        tenant.runningCalls -= size;
        start(tenant);
      });
    }
    if (tenant.runningGroups === 0 && !tenant.isAboutToStart) tenants.delete(tenant.id);
  }

  // Starts once node has handled the requests it has already read: answers leave together, so the next requests arrive
  // together.
  function startSoon(tenant: Tenant): void {
    if (tenant.isAboutToStart) return;
    tenant.isAboutToStart = true;
    setImmediate(() => {
      tenant.isAboutToStart = false;
      start(tenant);
    });
  }

  async function perform(tenantId: number, group: Entry<Call, Outcome>[], isBehind = false): Promise<void> {
    const calls = group.map(({ work }) => work);
    const deadline = Math.max(...group.map((one) => one.deadline));
    try {
      const outcomes = await send(tenantId, calls, deadline, isBehind);
      for (const [index, { settle }] of group.entries()) settle(outcomes[index]!);
    } catch (error) {
      if (group.length > 1 && isCausedByCall(error))
        await Promise.all(group.filter((one) => !one.isSettled).map((one) => perform(tenantId, [one])));
      else for (const { fail } of group) fail(error);
    }
  }

  return {
    waiting: queue.size,
    run(tenantId, call, deadline) {
      const entry = queue.open(tenantId, call, deadline);
      queue.push(entry);
      let tenant = tenants.get(tenantId);
      if (tenant === undefined)
        tenants.set(tenantId, (tenant = { id: tenantId, runningGroups: 0, runningCalls: 0, isAboutToStart: false }));
      if (queue.sizeOf(tenantId) >= longQueue) start(tenant);
      else startSoon(tenant);
      return entry.outcome;
    },
  };
}

// The size of the next group; 0: none is due.
function sizeOfDue({ runningGroups, runningCalls }: Tenant, waiting: number): number {
  if (runningGroups === maxRunningGroups) return 0;
  if (runningGroups === 0 || waiting >= longQueue) return waiting;
  const half = Math.ceil((runningCalls + waiting) / 2);
  return waiting < half ? 0 : half;
}
