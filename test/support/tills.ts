// Tills that go on whatever is done to the service, and write down every answer they get.
import { setTimeout as sleep } from "node:timers/promises";
import type { Reply } from "./client.ts";
import { client } from "./client.ts";
import { secretOf } from "./provisioning.ts";
import { newRequestId } from "./service.ts";

// `at` and `ms` on the clock of performance.now(): when it was sent, and how long it took.
export type Call = {
  path: string;
  body: Record<string, unknown>;
  status: number;
  code: string | null;
  at: number;
  ms: number;
};
export type Tills = {
  calls: Call[];
  // The codes that were used up: each redeemed in one step, or locked and confirmed.
  used: string[];
  // Asked in this order, as behind a load balancer: who refuses the connection has not got the call.
  servers: string[];
  until(count: number): Promise<void>;
  stop(): Promise<void>;
};

type TillsPlan = {
  accessKey: string;
  merchant: string;
  codes: string[];
  servers: string[];
  count?: number;
  pauseMs?: number;
};

export function startTills({ accessKey, merchant, codes, servers, count = 6, pauseMs = 10 }: TillsPlan): Tills {
  const tills: Tills = { calls: [], used: [], servers, until, stop };
  let isStopping = false;
  const running = Promise.all(
    Array.from({ length: count }, async () => {
      while (!isStopping) {
        await useOne();
        await sleep(Math.random() * pauseMs * 2);
      }
    }),
  );
  // Whoever waits for them sees the error; until then it is nobody's.
  running.catch(() => {});
  return tills;

  async function useOne(): Promise<void> {
    const coupon = codes.pop();
    if (coupon === undefined) throw new Error("no codes left: the test needs a larger batch");
    tills.used.push(coupon);
    await call("/v1/coupons/query", { coupon, merchant });
    if (tills.used.length % 2 === 0)
      return void (await call("/v1/coupons/redeem", { request_id: newRequestId(), coupon, merchant }));
    const lock_request_id = newRequestId();
    await call("/v1/coupons/lock", { request_id: lock_request_id, coupon, merchant });
    await call("/v1/coupons/confirm", { request_id: newRequestId(), lock_request_id, coupon, merchant });
  }

  async function call(path: string, body: Record<string, unknown>): Promise<void> {
    const at = performance.now();
    const { status, json } = await send([...tills.servers], path, body);
    tills.calls.push({
      path,
      body,
      status,
      code: (json?.code as string | undefined) ?? null,
      at,
      ms: performance.now() - at,
    });
    // What could not be done now is asked again until it is: nothing of it may be lost.
    if (status === 503) {
      await sleep(100);
      await call(path, body);
    }
  }

  async function send([url, ...others]: string[], path: string, body: object): Promise<Reply> {
    try {
      return await client({ url: url!, accessKey, secret: secretOf(accessKey) }).post(path, body);
    } catch (error) {
      if (others.length === 0 || (error as NodeJS.ErrnoException).code !== "ECONNREFUSED") throw error;
      return send(others, path, body);
    }
  }

  async function until(total: number): Promise<void> {
    while (tills.calls.length < total) await Promise.race([running, sleep(20)]);
  }

  async function stop(): Promise<void> {
    isStopping = true;
    await running;
  }
}

// How long the service was away for them: from the first call that failed to the end of the last; 0: for none.
export function awayMs(calls: Call[]): number {
  const failed = calls.filter(({ status }) => status !== 200);
  return failed.length === 0
    ? 0
    : Math.max(...failed.map(({ at, ms }) => at + ms)) - Math.min(...failed.map(({ at }) => at));
}
