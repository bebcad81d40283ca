// Tenants with rows in nearly every table, to show what a deletion takes and what it leaves.
import type { Coupon } from "./caller.ts";
import { newRequestId } from "./request-id.ts";
import type { Scenario } from "./scenario.ts";
import { tenants } from "./tenants.ts";
import { states, type State } from "../db/api/states.ts";

/** The usual tenants with a webhook for each party, which accepts nothing. */
export function tenantsWithWebhooks(): any[] {
  const file = structuredClone(tenants) as any[];
  for (const { parties } of file) for (const one of parties) one.webhook = { url: "http://127.0.0.1:9/" };
  return file;
}

type Side = Scenario["a"];

/** Something of both tenants in every table that work writes. `endDay` ends the open day. */
export async function fillTenants(world: Scenario, endDay: (side: Side) => Promise<unknown>): Promise<void> {
  const sides = [world.a, world.b];
  for (const side of sides) await fillTenant(world, side, () => endDay(side));
  for (const side of sides)
    await side.distributor.post("/v1/webhook/test", {
      request_id: newRequestId(),
      event_type: "coupon.voided",
      ...(side.variant === "A" && { party: side.distributorParty }),
    });
}

async function fillTenant(world: Scenario, side: Side, endDay: () => Promise<unknown>): Promise<void> {
  const { steps } = world;
  for (const state of Object.keys(states) as State[]) await side.makeCoupons(2, state);
  await side.maker.ok.createBatch(side.template, 3);
  const [coupon, other] = (await side.makeCoupons(2)) as [Coupon, Coupon];
  await steps.recall();
  await steps.close();
  await endDay();
  await steps.close();
  await side.till.ok.redeem(coupon, { order_amount: 20 });
  await side.till.cancel(other, { lock_request_id: "to come" });
  await steps.sequence();
  await steps.deliverDue();
  await world.owner.rows(
    `insert into core.stuck_work
     select tenant_id, party_id, 'mint', 'x', 'x', now(), now() from core.party where external_id = $1`,
    [side.distributorParty],
  );
}

/** The tables whose rows belong to tenants, without nonces. */
export async function listTables({ owner }: Pick<Scenario, "owner">): Promise<string[]> {
  const tables = await owner.rows<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
     where c.relnamespace = 'core'::regnamespace and c.relkind = 'r' and c.relname <> 'nonce' order by 1`,
  );
  return tables.map(({ name }) => name);
}

/** The rows of each tenant in each table, without nonces: how many, and the latest transaction among them. */
export async function readTenants({ owner }: Pick<Scenario, "owner">): Promise<Record<string, Record<string, string>>> {
  const parts = (await listTables({ owner })).map(
    (name) => `select tenant_id, '${name}' as name, concat(count(*), ' ', max(xmin::text::bigint)) as state
                   from core."${name}" group by tenant_id`,
  );
  const rows = await owner.rows<{ tenant: string; name: string; state: string }>(
    `select t.external_id as tenant, r.name, r.state
     from (${parts.join(" union all ")}) r join core.tenant t using (tenant_id)`,
  );
  const tenantOf = Map.groupBy(rows, (row) => row.tenant);
  return Object.fromEntries(
    [...tenantOf].map(([tenant, own]) => [tenant, Object.fromEntries(own.map((row) => [row.name, row.state]))]),
  );
}

/** The tables that a reset or a clearing leaves as they are. */
export const kept =
  `audit console_session credential merchant merchant_delegate party portal_link store template template_merchant
  tenant terminal webhook`.split(/\s+/);
