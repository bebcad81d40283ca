// Gathers the calls of a tenant while groups of it are under way, and sends them as one: one transaction then carries
// many calls. A call that finds its tenant idle is a group of one and waits for nobody.
import { unavailable } from "./problem.ts";

export type Groups<Call, Outcome> = {
  // `deadline` is on the clock of performance.now(). A call that is still in the queue then is never sent.
  run(tenantId: number, call: Call, deadline: number): Promise<Outcome>;
};

export type GroupParts<Call, Outcome> = {
  // The outcomes are in the order of the calls.
  send: (tenantId: number, calls: Call[], deadline: number) => Promise<Outcome[]>;
  // Whether an error says that the group had no effect because of something in it: then its calls are sent one by one.
  isUndone: (error: unknown) => boolean;
  isAlone: (call: Call) => boolean;
  largest: number;
  // Groups of one tenant at once: so that a busy tenant leaves places to the others.
  underWay: number;
  maxWaiting: number;
};

type Waiting<Call, Outcome> = {
  call: Call;
  deadline: number;
  isSettled: boolean;
  settle: (outcome: Outcome) => void;
  fail: (error: unknown) => void;
};
type Tenant<Call, Outcome> = { id: number; queue: Waiting<Call, Outcome>[]; busy: number };

export function createGroups<Call, Outcome>({ send, isUndone, isAlone, largest, underWay, maxWaiting }: GroupParts<Call, Outcome>): Groups<Call, Outcome> {
  const tenants = new Map<number, Tenant<Call, Outcome>>();
  let waitingCount = 0;

  // The next group of a tenant: as many as fit, those that passed their deadline in the queue left out.
  function take({ queue }: Tenant<Call, Outcome>): Waiting<Call, Outcome>[] {
    const group: Waiting<Call, Outcome>[] = [];
    while (queue.length > 0 && group.length < largest) {
      const next = queue[0]!;
      if (isAlone(next.call) && group.length > 0) break;
      queue.shift();
      waitingCount -= 1;
      if (next.isSettled) continue;
      group.push(next);
      if (isAlone(next.call)) break;
    }
    return group;
  }

  function start(tenant: Tenant<Call, Outcome>): void {
    while (tenant.busy < underWay && tenant.queue.length > 0) {
      const group = take(tenant);
      if (group.length === 0) continue;
      tenant.busy += 1;
      void perform(tenant.id, group).finally(() => {
        tenant.busy -= 1;
        start(tenant);
      });
    }
    if (tenant.busy === 0 && tenant.queue.length === 0) tenants.delete(tenant.id);
  }

  async function perform(tenantId: number, group: Waiting<Call, Outcome>[]): Promise<void> {
    const calls = group.map(({ call }) => call);
    const deadline = Math.max(...group.map((one) => one.deadline));
    try {
      const outcomes = await send(tenantId, calls, deadline);
      for (const [index, { settle }] of group.entries()) settle(outcomes[index]!);
    } catch (error) {
      if (group.length > 1 && isUndone(error)) await Promise.all(group.filter((one) => !one.isSettled).map((one) => perform(tenantId, [one])));
      else for (const { fail } of group) fail(error);
    }
  }

  return {
    run(tenantId, call, deadline) {
      if (waitingCount >= maxWaiting) throw unavailable(new Error("too many requests wait"));
      let tenant = tenants.get(tenantId);
      if (tenant === undefined) {
        tenant = { id: tenantId, queue: [], busy: 0 };
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
        const timer = setTimeout(() => waiting.fail(unavailable(new Error("deadline passed"))), deadline - performance.now());
        queue.push(waiting);
        waitingCount += 1;
      });
      start(tenant);
      return outcome;
    },
  };
}
