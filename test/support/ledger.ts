// Many ledger entries at once: one statement redeems a whole batch and reverses every tenth redemption. It bypasses the
// triggers, because the service would take too long in a test. The rows keep every invariant, see findBrokenInvariants.
import { openSession } from "../../src/database/connect.ts";
import type { Scenario } from "./scenario.ts";

export async function redeemWhole(
  service: Pick<Scenario, "address">,
  batch: string,
  merchant: string,
): Promise<number> {
  // Acts as the login itself, because only a superuser can switch off triggers.
  const login = openSession(service.address, { name: "coupon test" });
  try {
    await login.run("set session_replication_role = replica");
    const [row] = await login.rows<{ entries: number }>(
      `with chosen as materialized (
         select c.tenant_id, c.coupon_id, c.number, b.distributor_id, t.currency, t.discount_minor, m.merchant_id,
                clock_timestamp() as at, gen_random_uuid() as redemption_id,
                case when c.number % 10 = 0 then gen_random_uuid() end as reversal_id
         from core.batch b
         join core.template t using (tenant_id, template_id)
         join core.merchant m on m.tenant_id = b.tenant_id and m.external_id = $2
         join core.coupon c on c.tenant_id = b.tenant_id and c.batch_id = b.batch_id and c.status = 'ISSUED'
         where b.external_id = $1),
       coupon as (
         update core.coupon c set status = 'REDEEMED' from chosen x
         where (c.tenant_id, c.coupon_id) = (x.tenant_id, x.coupon_id)),
       redemption as (
         insert into core.redemption
           (tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id, status, currency,
            discount_minor, order_minor, store, terminal, order_id, started_at, redeemed_at, ended_at)
         select tenant_id, redemption_id, coupon_id, merchant_id, 0, 'r-' || number,
                case when reversal_id is null then 'REDEEMED' else 'REVERSED' end, currency, discount_minor,
                discount_minor + number, 'store ' || number % 7, '=till("' || number % 3 || '")',
                'order, ' || number, at, at, case when reversal_id is not null then at end
         from chosen),
       reversal as (
         insert into core.reversal (tenant_id, reversal_id, redemption_id, caller_id, reversed_at)
         select tenant_id, reversal_id, redemption_id, 0, at from chosen where reversal_id is not null),
       movement as materialized (
         select c.*, m.*
         from chosen c
         cross join lateral (values
           (c.redemption_id, 'REDEMPTION', c.discount_minor),
           (c.reversal_id, 'REVERSAL', -c.discount_minor)
         ) m (entry_id, entry_type, amount_minor)
         where m.entry_id is not null
         order by c.number, m.entry_type),
       entry as (
         insert into core.ledger_entry
           (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency, occurred_at,
            recorded_at)
         select tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency, at, at
         from movement)
       select count(*)::int as entries from movement`,
      [batch, merchant],
    );
    return row!.entries;
  } finally {
    await login.end();
  }
}
