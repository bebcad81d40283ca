// Writes redemptions as rows, each with its coupon, request and ledger entry, as the service writes them. Triggers and
// foreign keys are off meanwhile, which is a hundred times faster. A run ends with report.invariants, which checks the
// rows.
import { openSession } from "../../../src/database/connect.ts";
import type { Environment } from "./environment.ts";

/** Without statistics, nested loops over these tables would take hours. */
export const fillSettings =
  "set session_replication_role = replica; set synchronous_commit = off; set jit = off; set enable_nestloop = off; " +
  "set work_mem = '256MB'";

/** The temporary table `used` has a row for each coupon that is or was redeemed or locked. */
export const insertUsed = `
  insert into core.redemption
    (tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id, status, currency, discount_minor,
     order_minor, store, terminal, order_id, started_at, lock_expires_at, redeemed_at, ended_at)
  select u.tenant_id, u.redemption_id, u.coupon_id, u.merchant_id, u.caller_id, u.request_id, u.status, 'EUR', 500,
         2000, 'store 1', 'till 1', 'order-' || u.i, u.at,
         case when u.status = 'LOCKED' then now() + interval '1 day' else u.at + interval '15 minutes' end,
         case when u.status in ('REDEEMED', 'REVERSED') then u.at end,
         case when u.status not in ('REDEEMED', 'LOCKED') then least(u.at + interval '1 hour', now()) end
  from used u
  order by u.i;
  update core.coupon c
  set status = case when u.status in ('LOCKED', 'REDEEMED') then u.status when u.status = 'REVERSED' then 'REDEEMED'
                    else 'ISSUED' end
  from used u
  where c.tenant_id = u.tenant_id and c.coupon_id = u.coupon_id;
  insert into core.request
    (tenant_id, caller_id, request_id, operation, body_hash, http_status, response, recorded_at)
  select u.tenant_id, u.caller_id, u.request_id, case u.status when 'REDEEMED' then 'redeem' else 'lock' end,
         substr(uuid_send(gen_random_uuid()), 1, 8), 200,
         format('{"ok":true,"redemption":"%s","discount_amount":5.00}', rules.format_id('red', u.redemption_id)), u.at
  from used u
  order by u.i;`;

/** Redeems one in `every` coupons of the batches, in one transaction. Returns their number. */
export async function fillRedemptions({ address }: Environment, batches: string[], every = 1): Promise<number> {
  const session = openSession(address, { name: "coupon bench" });
  try {
    await session.run(fillSettings);
    await session.run(`
      begin;
      create temporary table used as
        select row_number() over () as i, c.tenant_id, c.coupon_id, b.distributor_id, 0 as caller_id,
               m.ids[1 + c.number % cardinality(m.ids)] as merchant_id, rules.make_id() as redemption_id,
               gen_random_uuid()::text as request_id, 'REDEEMED' as status, clock_timestamp() as at
        from core.batch b
        join core.coupon c using (tenant_id, batch_id)
        cross join (select array_agg(merchant_id order by merchant_id) as ids from core.merchant) m
        where b.external_id in (${batches.map((batch) => `'${batch}'`).join()}) and c.status = 'ISSUED'
          and c.number % ${every} = 0;
      ${insertUsed}
      insert into core.ledger_entry
        (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency, occurred_at, recorded_at)
      select u.tenant_id, u.redemption_id, 'REDEMPTION', u.distributor_id, u.coupon_id, 500, 'EUR', u.at, u.at
      from used u
      order by u.i;
      commit`);
    const [row] = await session.rows<{ filled: number }>("select count(*)::int as filled from used");
    return row!.filled;
  } finally {
    await session.end();
  }
}
