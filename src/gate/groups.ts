// Gathers the calls of a tenant while a group of it is under way, and sends them as the next one: one transaction then
// carries many calls. A call that finds its tenant idle waits for nobody but those that have come with it.
//
// A second group goes beside the first as soon as many calls wait: so that one is carried out while the other is written
// to disk, and calls do not end up in small groups, which cost nearly as much as large ones. Many that come while a place is
// free go at once, before node reads on: else the database waits for it.
import { msUntil } from "./lane.ts";
import { unavailable } from "../common/problem.ts";

export type Groups<Call, Outcome> = {
  // `deadline` is on the clock of performance.now(). A call that is still in the queue then is never sent.
  run(tenantId: number, call: Call, deadline: number): Promise<Outcome>;
  waiting(): number;
};

export type GroupParts<Call, Outcome> = {
  // The outcomes are in the order of the calls.
  send: (tenantId: number, calls: Call[], deadline: number) => Promise<Outcome[]>;
  // Whether an error says that the group had no effect because of something in it: then its calls are sent one by one.
  isUndone: (error: unknown) => boolean;
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
  groupsUnderWay: number;
  isAboutToStart: boolean;
};

const mostUnderWay = 2;
// From here on a group gains little by waiting for more. Measured at 64 connections: 8 carries a quarter less.
const many = 16;

export function createGroups<Call, Outcome>({
  send,
  isUndone,
  largest,
  maxWaiting,
}: GroupParts<Call, Outcome>): Groups<Call, Outcome> {
  const tenants = new Map<number, Tenant<Call, Outcome>>();
  let waitingCount = 0;

  // The next group of a tenant: as many as fit, those that passed their deadline in the queue left out.
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
    while (tenant.groupsUnderWay < mostUnderWay && tenant.queue.length >= (tenant.groupsUnderWay === 0 ? 1 : many)) {
      const group = take(tenant);
      if (group.length === 0) continue;
      tenant.groupsUnderWay += 1;
      void perform(tenant.id, group).finally(() => {
        tenant.groupsUnderWay -= 1;
        start(tenant);
      });
    }
    if (tenant.groupsUnderWay === 0 && !tenant.isAboutToStart) tenants.delete(tenant.id);
  }

  // Behind the requests that node has read already: answers go out together, so the next requests come together.
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
      if (group.length > 1 && isUndone(error))
        await Promise.all(group.filter((one) => !one.isSettled).map((one) => perform(tenantId, [one])));
      else for (const { fail } of group) fail(error);
    }
  }

  return {
    waiting: () => waitingCount,
    run(tenantId, call, deadline) {
      if (waitingCount >= maxWaiting) throw unavailable(new Error("too many requests wait"));
      let tenant = tenants.get(tenantId);
      if (tenant === undefined) {
        tenant = { id: tenantId, queue: [], groupsUnderWay: 0, isAboutToStart: false };
        tenants.set(tenantId, tenant);
      }
      const { queue } = tenant;
      const outcome = new Promise<Outcome>((resolve, reject) => {
        const waiting: Waiting<Call, Outcome> = {
          call,
          deadline,
          isSettled: false,
          settle(value) {
            clearTimeout(timer);
            waiting.isSettled = true;
            resolve(value);
          },
          fail(error) {
            clearTimeout(timer);
            waiting.isSettled = true;
            reject(error as Error);
          },
        };
        const timer = setTimeout(() => waiting.fail(unavailable(new Error("deadline passed"))), msUntil(deadline));
        queue.push(waiting);
        waitingCount += 1;
      });
      if (queue.length >= many) start(tenant);
      else startSoon(tenant);
      return outcome;
    },
  };
}
