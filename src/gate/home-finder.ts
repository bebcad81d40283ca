// Behind a router: where a tenant lives, after its cell could not be reached or has refused to serve it. The router
// asks the cells, and sends the next calls there.
import { sqlState } from "../database/connect.ts";
import { Unavailable } from "../common/unavailable.ts";
import { isUnreachableCell, type Connections } from "./connections.ts";

export type HomeFinder = {
  /**
   * Whether to send calls again that failed with `error`: their cell has refused them, and the router now knows another
   * one. Calls whose cell could not be reached may have been performed.
   */
  hasMoved(tenantId: number, error: unknown, deadline: number): Promise<boolean>;
};
type Parts = {
  connections: Pick<Connections, "rows">;
  onHome: (tenantId: number, cell: number) => void;
};

export function createHomeFinder({ connections, onHome }: Parts): HomeFinder {
  // At most one question for each tenant.
  const asked = new Map<number, Promise<boolean>>();

  async function ask(tenantId: number, deadline: number): Promise<boolean> {
    const [row] = await connections.rows<{ home: number | null; is_new: boolean }>(
      { lane: "lookup", tenantId },
      deadline,
      "select home, is_new from gate.find_home($1)",
      [tenantId],
    );
    if (row!.home !== null) onHome(tenantId, row!.home);
    return row!.is_new;
  }

  function findHome(tenantId: number, deadline: number): Promise<boolean> {
    const running = asked.get(tenantId);
    if (running !== undefined) return running;
    const one = ask(tenantId, deadline).finally(() => asked.delete(tenantId));
    asked.set(tenantId, one);
    return one;
  }

  return {
    async hasMoved(tenantId, error, deadline) {
      const cause = error instanceof Unavailable ? error.cause : null;
      // The cell does not serve the tenant, or takes no writes.
      if (/^(57P03|25006)$/.test(sqlState(cause) ?? "")) return findHome(tenantId, deadline);
      // The error of the call says what is wrong.
      if (isUnreachableCell(cause)) findHome(tenantId, deadline).catch(() => {});
      return false;
    },
  };
}
