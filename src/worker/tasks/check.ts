// The nightly self-check: asks the database which of its invariants are violated. Normally there are none. An operator
// has to handle a violation, so each one is an error in the log, with its number of rows and an example. The database
// keeps the results, which the metrics show.
//
// Each invariant is a statement of its own: a snapshot that lasts for hours would keep all dead rows of that time.
import type { Address } from "../../config/database-address.ts";
import type { Logger } from "../../common/log.ts";
import { connect } from "../../database/connect.ts";
import { openReconnecting } from "../../database/reconnecting.ts";
import type { Database } from "../../database/types.ts";
import type { JobRunner } from "../job-runner.ts";
import { startTicker, type Ticker } from "../ticker.ts";

// Long, because some invariants read all rows of large tables. No statement of the service waits for them.
const timeoutMs = 3 * 3_600_000;

type Invariant = { invariant: string; checked_at: Date | null };
type Result = { broken_rows: string; example: string | null };
/** `onlyNew`: those that were never checked, which a new database or version has. */
export type CheckOptions = { onlyNew?: boolean };

export type CheckerParts = { address: Address; role: string; log: Logger; stopping: AbortSignal };

export function createChecker({ address, role, log, stopping }: CheckerParts) {
  return async function check({ onlyNew = false }: CheckOptions = {}): Promise<void> {
    const open = () => connect(address, { name: "coupon self-check", role, max: 1, statementTimeoutMs: timeoutMs });
    const database = openReconnecting(open, timeoutMs + 5_000);
    const giveUp = () => void database.end();
    stopping.addEventListener("abort", giveUp);
    try {
      // Lets the server cancel the query when the connection is gone.
      await database.rows("select set_config('client_connection_check_interval', '10s', false)");
      const all = await database.rows<Invariant>("select invariant, checked_at from rules.list_invariants()");
      const due = all.filter(({ checked_at }) => !onlyNew || checked_at === null);
      let broken = 0;
      const errors: unknown[] = [];
      for (const { invariant } of due) {
        try {
          const text = "select broken_rows, example from rules.check_invariant($1)";
          const [result] = await database.rows<Result>(text, [invariant]);
          const { broken_rows, example } = result!;
          if (example === null) continue;
          broken += 1;
          log.error({ invariant, count: Number(broken_rows), example }, "an invariant is violated");
        } catch (error) {
          // The others are checked even if one fails.
          if (stopping.aborted) throw error;
          errors.push(error);
        }
      }
      if (errors.length > 0) throw errors[0];
      if (due.length > 0 && broken === 0) log.info("self-check: all invariants hold");
    } catch (error) {
      // The next program finds again what is new. A nightly check fails, so that another worker repeats it.
      if (!(onlyNew && stopping.aborted)) throw error;
    } finally {
      stopping.removeEventListener("abort", giveUp);
      await database.end();
    }
  };
}

type Starter = { database: Pick<Database, "rows">; runner: JobRunner; log: Logger };

/** A new database or version has invariants that were never checked. So their metrics exist from the first minute. */
export function startFirstCheck({ database, runner, log }: Starter): Ticker {
  const text = "select from rules.list_invariants() where checked_at is null limit 1";
  const tick = async (): Promise<void> => {
    if ((await database.rows(text)).length === 0) return;
    await runner.addJob("check", { onlyNew: true }, { jobKey: "first_check", maxAttempts: 1 });
  };
  return startTicker({ name: "first check", everyMs: 60_000, log, tick });
}
