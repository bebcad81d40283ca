// scenario() in its former shape, for the tests that still use it.
import type { Address } from "../../src/config/database-address.ts";
import type { Limits } from "../../src/config/config.ts";
import type { Metrics } from "../../src/server/metrics-server.ts";
import { createCaller } from "./caller.ts";
import type { Options } from "./database.ts";
import { scenario, type Scenario, type Teardown } from "./scenario.ts";
import type { BatchOptions } from "./scene.ts";
import type { Client } from "./signing-client.ts";

export { newRequestId } from "./request-id.ts";
export type { Teardown };
export type { BatchOptions };
export type Batch = { id: string; codes: string[]; couponIds: string[] };
export type Running = Omit<Scenario, "as" | "makeBatch" | "a" | "b" | "openPsql"> & {
  as(accessKey: string): Client;
  makeBatch(by: Client, template: string, count: number, options?: BatchOptions): Promise<Batch>;
};

export type Existing = { address: Address; masterKeyText?: string };

export async function startService(
  t: Teardown,
  file?: unknown,
  { on, metrics, ...options }: Options & { on?: Existing; metrics?: Metrics } = {},
  limits: Partial<Limits> = {},
): Promise<Running> {
  const running = await scenario(t, {
    ...options,
    http: true,
    limits,
    ...(file !== undefined && { file }),
    ...(on !== undefined && { on }),
    ...(metrics !== undefined && { metrics }),
  });
  return {
    ...running,
    async makeBatch(by, template, count, batchOptions) {
      const { id, coupons } = await running.makeBatch(createCaller(by, ""), template, count, batchOptions);
      return { id, codes: coupons.map(({ code }) => code), couponIds: coupons.map((coupon) => coupon.id) };
    },
  };
}
