// Marks expired locks as LAPSED and coupons past valid_to as EXPIRED, and writes an event for each released coupon that
// expired. Answers already treat both as ended; this task only updates the rows.
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import { repeatThrottled } from "../throttle.ts";

// About 5 ms of work: requests that arrive meanwhile barely notice.
const stepSize = 100;

export function createExpirer({ database, stopping }: { database: ReconnectingDatabase; stopping: AbortSignal }) {
  const run = (text: string) =>
    repeatThrottled(async () => (await database.rows<{ done: number }>(text, [stepSize]))[0]!.done, stopping);

  // Any number of these steps may run at once: each skips rows that another one holds.
  return async function expire(): Promise<void> {
    await run("select jobs.lapse_locks($1) as done");
    await run("select jobs.expire_coupons($1) as done");
  };
}
