// Two cells that both own rows, and a router.
import type { Address } from "../../src/config/database-address.ts";
import { createDatabase } from "./database.ts";
import { becomeCell } from "./route.ts";
import { findRouterBinaries, startRouterServer } from "./router.ts";
import { scenario, type Scenario, type Teardown } from "./scenario.ts";
import { tenants } from "./tenants.ts";

export type TwoCells = { router: Address; worlds: [Scenario, Scenario] };

/**
 * A router, and two cells with a tenant each: ten_a of Variant A, ten_b of Variant B. The router does not know the
 * cells yet. Their databases are those of `worlds`, which have the same keys.
 */
export async function startTwoCells(t: Teardown): Promise<TwoCells> {
  const server = await startRouterServer(findRouterBinaries()!);
  t.teardown(server.stop);
  const [one, two] = [await createDatabase(), await createDatabase()];
  t.teardown(() => Promise.all([one.drop(), two.drop()]));
  await becomeCell(two.address, 2);
  const [tenantA, , tenantB] = tenants;
  const first = await scenario(t, { on: one, file: { tenants: [tenantA] } });
  const on = { address: two.address, masterKeyText: first.masterKeyText };
  return { router: server.address, worlds: [first, await scenario(t, { on, file: { tenants: [tenantB] } })] };
}
