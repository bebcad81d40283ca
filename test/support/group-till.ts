// A till that sends groups of calls to gate.perform as the service does, with coupons to redeem.
import type { Test } from "tap";
import { startService } from "./service.ts";
import { makeStock, openTill } from "./writers.ts";

export type GroupTill = Awaited<ReturnType<typeof startGroupTill>>;
export const merchant = "mch_a";
export const handedBack = "handed back";

export const redeem = (coupon: string, more: object = {}) => ({
  operation: "redeem",
  args: { coupon, merchant },
  ...more,
});

export async function startGroupTill(t: Test, count: number) {
  const service = await startService(t);
  const { again } = await makeStock(service, { again: count, once: 0 });
  const till = await openTill(service);
  // A call that waits instead of being handed back fails.
  await till.session.run("set lock_timeout = '20s'");
  t.teardown(() => till.session.end());

  // The outcomes in the order of the calls: 200, a code, or handed back.
  async function answers(
    calls: { operation: string; args: object; body_hash?: null }[],
    mayWait = false,
  ): Promise<(number | string)[]> {
    const rows = await till.send(calls, mayWait).catch((error: Error) => error.message);
    if (typeof rows === "string") return [rows];
    return rows.map(({ http_status, body }) =>
      http_status === 200 ? 200 : http_status === null ? handedBack : (JSON.parse(body) as { code: string }).code,
    );
  }

  return { service, till, answers, nextCoupon: () => again.pop()!.lookup };
}
