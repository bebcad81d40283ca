// Counts the requests in progress. A tenant may have half of the limit, so that one tenant leaves room for the others.
import { Unavailable } from "../common/unavailable.ts";

export type OpenRequests = {
  /** Counts a request. Throws Unavailable, and does not count it, if there are too many. */
  add(): void;
  /** Counts it for its tenant too. Throws Unavailable if that tenant has too many. */
  assign(tenantId: number): void;
  /** Ends a request. `tenantId` is the tenant it was assigned to, even if that was refused. */
  remove(tenantId: number | undefined): void;
};
// The number of requests in progress, also shown as a metric.
export type AppLoad = { openRequests: number };

export function createOpenRequests(
  limit: number,
  load: AppLoad,
  onRefused: () => void,
  what = "requests",
): OpenRequests {
  const ofTenants = new Map<number, number>();
  const limitOfTenant = Math.ceil(limit / 2);

  function refuse(reason: string): never {
    onRefused();
    throw new Unavailable(reason);
  }

  return {
    add() {
      if (load.openRequests >= limit) refuse(`too many ${what} at once`);
      load.openRequests += 1;
    },
    assign(tenantId) {
      const count = (ofTenants.get(tenantId) ?? 0) + 1;
      ofTenants.set(tenantId, count);
      if (count > limitOfTenant) refuse(`too many ${what} of the tenant at once`);
    },
    remove(tenantId) {
      load.openRequests -= 1;
      if (tenantId !== undefined) ofTenants.set(tenantId, ofTenants.get(tenantId)! - 1);
    },
  };
}
