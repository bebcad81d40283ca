// Notices that a cell behind a router is down, so that its calls fail at once and fill no queue. A cell is down when
// its statements have failed for a second, and none has succeeded. Then one statement in half a second is let through
// to try, and the first that succeeds ends this. Statements of other cells are not affected.
import { sqlState } from "../database/connect.ts";
import type { Logger } from "../common/log.ts";
import { Unavailable } from "../common/unavailable.ts";
import { isUnreachableCell } from "./connections.ts";

export type CellWatch = {
  /** Runs `work`, and learns from it. Rejects with Unavailable at once while the cell is down. */
  observe<T>(work: () => Promise<T>): Promise<T>;
};
type Parts = { cell: number; log: Logger; uptime?: () => number };

const downAfterMs = 1_000;
const tryEveryMs = 500;

export function createCellWatch({ cell, log, uptime = () => performance.now() }: Parts): CellWatch {
  // When the first failure came since the last success; null: there is none.
  let failingSince: number | null = null;
  let isDown = false;
  let triedAt = -Infinity;

  function noteFailure(error: Unavailable): void {
    failingSince ??= uptime();
    if (isDown || uptime() - failingSince < downAfterMs) return;
    isDown = true;
    log.error({ cell, err: error }, "a cell is down: calls of its tenants get 503 until it answers again");
  }

  function noteSuccess(): void {
    failingSince = null;
    if (isDown) log.info({ cell }, "the cell answers again");
    isDown = false;
  }

  return {
    async observe(work) {
      if (isDown && uptime() - triedAt < tryEveryMs) throw new Unavailable(`cell ${cell} is down`);
      triedAt = uptime();
      try {
        const result = await work();
        noteSuccess();
        return result;
      } catch (error) {
        if (error instanceof Unavailable) {
          if (isAnswer(error)) noteSuccess();
          else if (isOfCell(error)) noteFailure(error);
        }
        throw error;
      }
    },
  };
}

// The cell says that it does not serve the tenant.
const isAnswer = ({ cause }: Unavailable): boolean => sqlState(cause) === "57P03";

// No answer, no connection, a shutdown, or a standby. Other codes may be the router's.
function isOfCell({ cause }: Unavailable): boolean {
  const state = sqlState(cause);
  return state === null || isUnreachableCell(cause) || /^(08|57P|25006)/.test(state);
}
