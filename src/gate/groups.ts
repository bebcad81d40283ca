// Batches calls per tenant. Calls that arrive while a group is running form the next group, so one transaction and one
// commit carry many calls. A call that finds its tenant idle starts at once, with the calls that arrived beside it.
//
// A second group starts beside the first as soon as many calls wait: one runs while the other is written to disk, and
// calls do not end up in small groups, which cost nearly as much as large ones. If a place is free when many calls
// wait, they start before node reads more requests; otherwise the database would idle.
import { msUntil } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";

export type Groups<Call, Outcome> = {
  /** Throws or rejects with Unavailable. A call that is still in the queue at its deadline is never sent. */
  run(tenantId: number, call: Call, deadline: number): Promise<Outcome>;
  waiting(): number;
};

export type GroupParts<Call, Outcome> = {
  /** Performs a group; the outcomes are in the order of the calls. */
  send: (tenantId: number, calls: Call[], deadline: number) => Promise<Outcome[]>;
  /** Whether one of its calls made a group fail, without any effect. Its calls are then sent one by one. */
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
// A longer queue gains little by waiting for more. Measured at 64 connections: 8 carries a quarter less.
const longQueue = 16;

export function createGroups<Call, Outcome>(parts: GroupParts<Call, Outcome>): Groups<Call, Outcome> {
  const { send, isCausedByCall, largest, maxWaiting } = parts;
  const tenants = new Map<number, Tenant<Call, Outcome>>();
  let waitingCount = 0;

  // Takes the next group of a tenant out of its queue. Calls that passed their deadline there are left out.
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

  // Starts after the requests that node has read already: answers leave together, so the next requests arrive together.
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
      if (waitingCount >= maxWaiting) throw new Unavailable("too many requests wait");
      const tenant = tenants.get(tenantId) ?? { id: tenantId, queue: [], runningGroups: 0, isAboutToStart: false };
      tenants.set(tenantId, tenant);
      const { waiting, outcome } = createWaiting<Call, Outcome>(call, deadline);
      tenant.queue.push(waiting);
      waitingCount += 1;
      if (tenant.queue.length >= longQueue) start(tenant);
      else startSoon(tenant);
      return outcome;
    },
  };
}

// A call, and the promise of its outcome, which fails at the deadline.
function createWaiting<Call, Outcome>(call: Call, deadline: number) {
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
  const timer = setTimeout(() => waiting.fail(new Unavailable("deadline passed")), msUntil(deadline));
  function end(): void {
    clearTimeout(timer);
    waiting.isSettled = true;
  }
  return { waiting, outcome };
}
