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

/**
 * Redeems one in `every` coupons of the batches, and reverses those whose number is a multiple of `reversed`, in one
 * transaction. Returns the number of ledger entries.
 */
export async function fillRedemptions(
  { address }: Pick<Environment, "address">,
  batches: string[],
  { every = 1, reversed = 0 } = {},
): Promise<number> {
  const session = openSession(address, { name: "coupon bench" });
  try {
    await session.run(fillSettings);
    await session.run(`
      begin;
      create temporary table used as
        select row_number() over () as i, c.tenant_id, c.coupon_id, b.distributor_id, 0 as caller_id,
               m.ids[1 + c.number % cardinality(m.ids)] as merchant_id, rules.make_id() as redemption_id,
               gen_random_uuid()::text as request_id, now() as at,
               case when c.number % nullif(${reversed}, 0) = 0 then 'REVERSED' else 'REDEEMED' end as status
        from core.batch b
        join core.coupon c using (tenant_id, batch_id)
        cross join lateral (
          select array_agg(m.merchant_id order by m.merchant_id) as ids from core.merchant m
          where m.tenant_id = b.tenant_id) m
        where b.external_id in (${batches.map((batch) => `'${batch}'`).join()}) and c.status = 'ISSUED'
          and c.number % ${every} = 0;
      ${insertUsed}
      insert into core.reversal (tenant_id, reversal_id, redemption_id, caller_id, reversed_at)
      select u.tenant_id, rules.make_id(), u.redemption_id, u.caller_id, u.at from used u where u.status = 'REVERSED';
      create temporary table moved as
        select u.redemption_id as entry_id, 'REDEMPTION' as type, 500 as minor, u.* from used u
        union all
        select v.reversal_id, 'REVERSAL', -500, u.* from used u join core.reversal v using (redemption_id);
      insert into core.ledger_entry
        (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency, occurred_at, recorded_at)
      select m.tenant_id, m.entry_id, m.type, m.distributor_id, m.coupon_id, m.minor, 'EUR', m.at, m.at
      from moved m
      order by m.i, m.type;
      commit`);
    const [row] = await session.rows<{ entries: number }>("select count(*)::int as entries from moved");
    return row!.entries;
  } finally {
    await session.end();
  }
}
