// Batches calls per tenant. Calls that arrive while a group is running form the next group, so one transaction and one
// commit carry many calls. A call that finds its tenant idle starts at once, with the calls that arrived beside it.
//
// A second group starts once 16 calls wait: it runs while the first is flushed to disk. With fewer calls it would not
// pay, because a small group costs nearly as much as a large one. Groups of 16 or more start at once, so that the
// database does not idle while node reads more requests.
import { watchDeadlines, type Deadlines } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";

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
  send: (tenantId: number, calls: Call[], deadline: number) => Promise<Outcome[]>;
  /** Whether a call made its group fail, so that the group had no effect. Its calls are then sent one by one. */
  isCausedByCall: (error: unknown) => boolean;
  largest: number;
  maxWaiting: number;
};

type Waiting<Call, Outcome> = {
  call: Call;
  deadline: number;
  isSettled: boolean;
  settle: (outcome: Outcome) => void;
  fail: (error: unknown) => void;
};
type Tenant<Call, Outcome> = {
  id: number;
  queue: Waiting<Call, Outcome>[];
  runningGroups: number;
  isAboutToStart: boolean;
};

const maxRunningGroups = 2;
// The queue length from which a second group starts. Waiting for a longer queue gains little. Measured at 64
// connections: a threshold of 8 instead of 16 lowers the throughput by a quarter.
const longQueue = 16;

export function createGroups<Call, Outcome>(parts: GroupParts<Call, Outcome>): Groups<Call, Outcome> {
  const { send, isCausedByCall, largest, maxWaiting } = parts;
  const tenants = new Map<number, Tenant<Call, Outcome>>();
  const deadlines = watchDeadlines<Waiting<Call, Outcome>>(({ fail }) => fail(new Unavailable("deadline passed")));
  let waitingCount = 0;

  // Removes the next group from the queue of a tenant, and skips calls whose deadline has passed.
  function take({ queue }: Tenant<Call, Outcome>): Waiting<Call, Outcome>[] {
    const group: Waiting<Call, Outcome>[] = [];
    while (queue.length > 0 && group.length < largest) {
      const next = queue.shift()!;
      waitingCount -= 1;
      if (!next.isSettled) group.push(next);
    }
    return group;
  }

  function start(tenant: Tenant<Call, Outcome>): void {
    const isDue = () => tenant.queue.length >= (tenant.runningGroups === 0 ? 1 : longQueue);
    while (tenant.runningGroups < maxRunningGroups && isDue()) {
      const group = take(tenant);
      if (group.length === 0) continue;
      tenant.runningGroups += 1;
      void perform(tenant.id, group).finally(() => {
        tenant.runningGroups -= 1;
        start(tenant);
      });
    }
    if (tenant.runningGroups === 0 && !tenant.isAboutToStart) tenants.delete(tenant.id);
  }

  // Starts once node has handled the requests it has already read: answers leave together, so the next requests arrive
  // together.
  function startSoon(tenant: Tenant<Call, Outcome>): void {
    if (tenant.isAboutToStart) return;
    tenant.isAboutToStart = true;
    setImmediate(() => {
      tenant.isAboutToStart = false;
      start(tenant);
    });
  }

  async function perform(tenantId: number, group: Waiting<Call, Outcome>[]): Promise<void> {
    const calls = group.map(({ call }) => call);
    const deadline = Math.max(...group.map((one) => one.deadline));
    try {
      const outcomes = await send(tenantId, calls, deadline);
      for (const [index, { settle }] of group.entries()) settle(outcomes[index]!);
    } catch (error) {
      if (group.length > 1 && isCausedByCall(error))
        await Promise.all(group.filter((one) => !one.isSettled).map((one) => perform(tenantId, [one])));
      else for (const { fail } of group) fail(error);
    }
  }

  return {
    waiting: () => waitingCount,
    run(tenantId, call, deadline) {
      const tenant = tenants.get(tenantId) ?? { id: tenantId, queue: [], runningGroups: 0, isAboutToStart: false };
      if (waitingCount >= maxWaiting || tenant.queue.length >= maxWaiting / 2) throw tooManyWait();
      tenants.set(tenantId, tenant);
      const { waiting, outcome } = createWaiting<Call, Outcome>(call, deadline, deadlines);
      tenant.queue.push(waiting);
      waitingCount += 1;
      if (tenant.queue.length >= longQueue) start(tenant);
      else startSoon(tenant);
      return outcome;
    },
  };
}

const tooManyWait = () => new Unavailable("too many requests wait");

// A call, and the promise of its outcome, which fails at the deadline.
function createWaiting<Call, Outcome>(call: Call, deadline: number, deadlines: Deadlines<Waiting<Call, Outcome>>) {
  const { promise: outcome, resolve, reject } = Promise.withResolvers<Outcome>();
  const waiting: Waiting<Call, Outcome> = {
    call,
    deadline,
    isSettled: false,
    settle(value) {
      end();
      resolve(value);
    },
    fail(error) {
      end();
      reject(error as Error);
    },
  };
  deadlines.add(waiting);
  function end(): void {
    deadlines.delete(waiting);
    waiting.isSettled = true;
  }
  return { waiting, outcome };
}
