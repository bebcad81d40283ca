// Work that waits for its turn: bounded in all and for each tenant, and never past its deadline. The driver has neither
// a queue limit nor deadlines, and its promises may never settle.
import { watchDeadlines } from "../common/deadline.ts";
import { Unavailable } from "../common/unavailable.ts";

/** null: work for no tenant, such as finding a credential. It has no share, only the limit for all. */
export type TenantId = number | null;

export type Entry<Work, Outcome> = {
  tenantId: TenantId;
  work: Work;
  /** On the clock of performance.now(). */
  deadline: number;
  /** Rejects with Unavailable at the deadline, whether the entry still waits or was taken. */
  outcome: Promise<Outcome>;
  isSettled: boolean;
  settle(outcome: Outcome): void;
  fail(error: unknown): void;
};

export type Queue<Work, Outcome> = {
  /** An entry that does not wait yet. */
  open(tenantId: TenantId, work: Work, deadline: number): Entry<Work, Outcome>;
  /** Throws Unavailable if too many wait. A tenant may have half of the queue, so that others can wait too. */
  push(entry: Entry<Work, Outcome>): void;
  /** Takes an entry out of the queue, because its turn has come. */
  take(entry: Entry<Work, Outcome>): void;
  /** The entries that wait, in the order in which they came: all of them, or those of one tenant. */
  entries(): Iterable<Entry<Work, Outcome>>;
  entriesOf(tenantId: TenantId): Iterable<Entry<Work, Outcome>>;
  size(): number;
  sizeOf(tenantId: TenantId): number;
  /** Fails all entries without an outcome, including those that were taken. */
  failAll(reason: string): void;
};

export function createQueue<Work, Outcome>(mostWaiting: number): Queue<Work, Outcome> {
  type One = Entry<Work, Outcome>;
  const waiting = new Set<One>();
  const byTenant = new Map<TenantId, Set<One>>();
  const unsettled = new Set<One>();
  const deadlines = watchDeadlines<One>(({ fail }) => fail(new Unavailable("deadline passed")));

  function take(entry: One): void {
    if (!waiting.delete(entry)) return;
    const ofTenant = byTenant.get(entry.tenantId)!;
    ofTenant.delete(entry);
    if (ofTenant.size === 0) byTenant.delete(entry.tenantId);
  }

  function open(tenantId: TenantId, work: Work, deadline: number): One {
    const { promise: outcome, resolve, reject } = Promise.withResolvers<Outcome>();
    const entry: One = {
      tenantId,
      work,
      deadline,
      outcome,
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
    function end(): void {
      entry.isSettled = true;
      unsettled.delete(entry);
      deadlines.delete(entry);
      take(entry);
    }
    unsettled.add(entry);
    deadlines.add(entry);
    return entry;
  }

  return {
    open,
    push(entry) {
      const ofTenant = byTenant.get(entry.tenantId) ?? new Set();
      const hasShare = entry.tenantId === null || ofTenant.size < mostWaiting / 2;
      if (waiting.size >= mostWaiting || !hasShare) {
        // The caller gets the refusal as an exception, so the rejected promise needs no other handler.
        entry.outcome.catch(() => {});
        const refusal = new Unavailable("too many requests wait");
        entry.fail(refusal);
        throw refusal;
      }
      byTenant.set(entry.tenantId, ofTenant.add(entry));
      waiting.add(entry);
    },
    take,
    entries: () => waiting,
    entriesOf: (tenantId) => byTenant.get(tenantId) ?? [],
    size: () => waiting.size,
    sizeOf: (tenantId) => byTenant.get(tenantId)?.size ?? 0,
    failAll(reason) {
      for (const { fail } of unsettled) fail(new Unavailable(reason));
    },
  };
}
