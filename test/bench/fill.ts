// Writes many redemptions as rows, each with its coupon, request and ledger entry, as the service writes them.
// Triggers and foreign keys are off meanwhile, which is a hundred times faster. Every benchmark ends with
// report.invariants, which checks the rows.
import { openSession } from "../../src/database/connect.ts";
import type { Environment } from "./environment.ts";

const blockSize = 20_000;

// Redeems one in `every` coupons of each batch, so that they are spread over the table. Returns their number.
export async function fillRedemptions(environment: Environment, every = 1): Promise<number> {
  const session = openSession(environment.address, { name: "coupon bench fill" });
  let total = 0;
  try {
    await session.run("set session_replication_role = replica; set jit = off; set synchronous_commit = off");
    const batches = await session.rows<{ batch_id: number; total_count: number }>(
      "select b.batch_id, b.total_count from core.batch b where b.tenant_id = $1 and b.status = 'ALLOCATED'",
      [environment.tenantId],
    );
    for (const { batch_id, total_count } of batches) {
      for (let after = 0; after < total_count; after += blockSize * every) {
        const [row] = await session.rows<{ filled: number }>(fillBlock, [
          environment.tenantId,
          batch_id,
          after,
          after + blockSize * every,
          every,
        ]);
        total += row!.filled;
      }
    }
    await session.run("vacuum analyze");
  } finally {
    await session.end();
  }
  return total;
}

const fillBlock = `
  with merchants as (
    select array_agg(m.merchant_id order by m.merchant_id) as ids from core.merchant m where m.tenant_id = $1),
  granted as materialized (
    select c.coupon_id, c.number, b.distributor_id, rules.make_id() as redemption_id,
           gen_random_uuid()::text as request_id, clock_timestamp() as now,
           m.ids[1 + c.number % cardinality(m.ids)] as merchant_id
    from core.coupon c
    join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
    cross join merchants m
    where c.tenant_id = $1 and c.batch_id = $2 and c.number > $3 and c.number <= $4 and c.number % $5 = 0
      and c.status = 'ISSUED'),
  used as (
    update core.coupon c
    set status = 'REDEEMED'
    from granted g
    where c.tenant_id = $1 and c.coupon_id = g.coupon_id),
  redeemed as (
    insert into core.redemption
      (tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id, status, currency,
       discount_minor, order_minor, store, terminal, order_id, started_at, redeemed_at)
    select $1, g.redemption_id, g.coupon_id, g.merchant_id, 0, g.request_id, 'REDEEMED', 'EUR',
           500, 2000 + g.number % 8000, 'store ' || g.number % 900, 'till ' || g.number % 7, (100000 + g.number)::text,
           g.now, g.now
    from granted g),
  entered as (
    insert into core.ledger_entry
      (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency, occurred_at, recorded_at)
    select $1, g.redemption_id, 'REDEMPTION', g.distributor_id, g.coupon_id, 500, 'EUR', g.now, g.now
    from granted g),
  answered as (
    insert into core.request (tenant_id, caller_id, request_id, operation, body_hash, http_status,
                              response, recorded_at)
    select $1, 0, g.request_id, 'redeem', substr(uuid_send(gen_random_uuid()), 1, 8), 200,
           format('{"ok":true,"redemption":"%s","discount_amount":5.00}', rules.format_id('red', g.redemption_id)),
           g.now
    from granted g)
  select count(*)::int as filled from granted`;
