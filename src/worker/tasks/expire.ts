// Marks locks past their end as lapsed and coupons past valid_to as expired, and writes an event for each released
// coupon that expired. Both are over at that moment for everyone; this task only brings the rows up to date.
import type { ReconnectingDatabase } from "../../database/reconnecting.ts";
import { repeatThrottled } from "../throttle.ts";

// About 5 ms of work: requests that arrive meanwhile barely notice.
const stepSize = 100;

export function createExpirer({ database, stopping }: { database: ReconnectingDatabase; stopping: AbortSignal }) {
  const run = (text: string) =>
    repeatThrottled(async () => (await database.rows<{ done: number }>(text, [stepSize]))[0]!.done, stopping);

  // Any number of these may run: each skips rows that another one holds.
  return async function expire(): Promise<void> {
    await run("select jobs.lapse_locks($1) as done");
    await run("select jobs.expire_coupons($1) as done");
  };
}
