// Writes down what time has done: locks past their end, coupons past valid_to. Both count at once, written or not;
// this makes the rows say so and tells of each released coupon that expired.
import { stepByStep } from "../throttle.ts";
import type { SteadyDatabase } from "../../database/reconnecting.ts";

// Some 5 ms of work: a till that comes meanwhile hardly notices.
const stepSize = 100;

export function createExpirer({ database, stopping }: { database: SteadyDatabase; stopping: AbortSignal }) {
  const run = (text: string) =>
    stepByStep(async () => (await database.rows<{ done: number }>(text, [stepSize]))[0]!.done, stopping);

  // Any number of these may run: each takes what nobody else holds.
  return async function expire(): Promise<{ lapsed: number; looked: number }> {
    const lapsed = await run("select jobs.lapse_locks($1) as done");
    const looked = await run("select jobs.expire_coupons($1) as done");
    return { lapsed, looked };
  };
}
