// The nightly self-check: asks the database which of its laws are broken. None is, always; where one is, an operator
// must look, so each is an error in the log, with how often and an example.
import { connect } from "../../database/connect.ts";
import type { Address } from "../../common/database-address.ts";
import type { Logger } from "../../common/log.ts";
import type { WorkObserver } from "../metrics.ts";
import { keepAnswering } from "../../database/reconnecting.ts";

// It reads everything, at an hour of the night; no statement of the service waits for it.
const timeoutMs = 3 * 3_600_000;

type Broken = { law: string; count: string; example: string };

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
    const database = keepAnswering(open, timeoutMs + 5_000);
    const giveUp = () => void database.end();
    stopping.addEventListener("abort", giveUp);
    try {
      // So that the server notices when nobody waits for the answer any more.
      await database.rows("select set_config('client_connection_check_interval', '10s', false)");
      const broken = await database.rows<Broken>("select law, count, example from jobs.check_invariants()");
      for (const { law, count, example } of broken)
        log.error({ law, count: Number(count), example }, "a law of the system is broken");
      onChecked?.(broken.map(({ law, count }) => ({ law, rows: Number(count) })));
      if (broken.length === 0) log.info("self-check: all laws of the system hold");
    } finally {
      stopping.removeEventListener("abort", giveUp);
      await database.end();
    }
  };
}
