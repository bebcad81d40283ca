// The nightly self-check: asks the database which of its invariants are violated. Normally there are none. An operator
// has to handle a violation, so each one is an error in the log, with its number of rows and an example.
import type { Address } from "../../config/database-address.ts";
import type { Logger } from "../../common/log.ts";
import { connect } from "../../database/connect.ts";
import { openReconnecting } from "../../database/reconnecting.ts";
import type { WorkObserver } from "../metrics.ts";

// Long, because the check reads all tables. No statement of the service waits for it.
const timeoutMs = 3 * 3_600_000;

type Violation = { invariant: string; count: string; example: string };

export type CheckerParts = {
  address: Address;
  role: string;
  log: Logger;
  stopping: AbortSignal;
  onChecked?: WorkObserver["checked"] | undefined;
};

export function createChecker({ address, role, log, stopping, onChecked }: CheckerParts) {
  return async function check(): Promise<void> {
    const open = () => connect(address, { name: "coupon self-check", role, max: 1, statementTimeoutMs: timeoutMs });
    const database = openReconnecting(open, timeoutMs + 5_000);
    const giveUp = () => void database.end();
    stopping.addEventListener("abort", giveUp);
    try {
      // Lets the server cancel the query when the connection is gone.
      await database.rows("select set_config('client_connection_check_interval', '10s', false)");
      const violations = await database.rows<Violation>(
        "select invariant, count, example from jobs.check_invariants()",
      );
      for (const { invariant, count, example } of violations)
        log.error({ invariant, count: Number(count), example }, "an invariant is violated");
      onChecked?.(violations.map(({ invariant, count }) => ({ invariant, rows: Number(count) })));
      if (violations.length === 0) log.info("self-check: all invariants hold");
    } finally {
      stopping.removeEventListener("abort", giveUp);
      await database.end();
    }
  };
}
