// Tills that keep working whatever happens to the service, and record every answer.
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, type Reply } from "./client.ts";
import { newRequestId } from "./request-id.ts";
import { secretOf } from "./tenants.ts";
import { waitUntil } from "./wait-until.ts";

type Call = { path: string; body: Record<string, unknown>; status: number; code: string | null };
export type Tills = {
  calls: Call[];
  // The used codes: each was redeemed, or locked and confirmed.
  used: string[];
  // Tried in this order, as by a load balancer. A server that refuses the connection has not received the call.
  servers: string[];
  until(count: number): Promise<void>;
  stop(): Promise<void>;
};

type TillsPlan = { codes: string[]; servers: string[]; count?: number; pauseMs?: number };

const [accessKey, merchant] = ["ak_a", "mch_a"];

export function startTills({ codes, servers, count = 6, pauseMs = 10 }: TillsPlan): Tills {
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
  // Avoids an unhandled rejection. until() and stop() report the error.
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
    const { status, json } = await send([...tills.servers], path, body);
    tills.calls.push({ path, body, status, code: json?.code ?? null });
    // Retries until the call succeeds, so that no call is lost.
    if (status === 503) {
      await sleep(100);
      await call(path, body);
    }
  }

  async function send([url, ...others]: string[], path: string, body: object): Promise<Reply> {
    try {
      return await createClient({ url: url!, accessKey, secret: secretOf(accessKey) }).post(path, body);
    } catch (error) {
      if (others.length === 0 || (error as NodeJS.ErrnoException).code !== "ECONNREFUSED") throw error;
      return send(others, path, body);
    }
  }

  async function until(total: number): Promise<void> {
    const areMade = async () => {
      if (tills.calls.length < total) await Promise.race([running, sleep(20)]);
      return tills.calls.length >= total;
    };
    await waitUntil(`${total} calls of the tills`, areMade, { everyMs: 0 });
  }

  async function stop(): Promise<void> {
    isStopping = true;
    await running;
  }
}
