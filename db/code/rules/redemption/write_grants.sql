-- Writes the rows of granted locks or redeems, and records and returns their answers. The ledger
-- entry of a redeem is also its event. It is one statement, because the triggers compare the tables
-- at its end.
create or replace function rules.write_grants(p_grants core.grant[], p_status text)
returns core.answer[]
language plpgsql volatile as $$
declare
  v_answers  core.answer[];
begin
  with g as materialized (select * from unnest(p_grants)),
  new_redemption as (
    insert into core.redemption
      (tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id, status,
       currency, discount_minor, order_minor, store, terminal, order_id, started_at,
       lock_expires_at, redeemed_at)
    select (g.call).tenant_id, g.redemption_id, g.coupon_id, g.merchant_id, (g.call).caller_id,
           (g.call).request_id, p_status, g.currency, g.discount_minor, g.order_minor,
           (g.call).args ->> 'store', (g.call).args ->> 'terminal', (g.call).args ->> 'order_id',
           g.granted_at, g.lock_expires_at,
           case when g.lock_expires_at is null then g.granted_at end
    from g),
  new_ledger_entry as (
    insert into core.ledger_entry
      (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency,
       occurred_at, recorded_at)
    select (g.call).tenant_id, g.redemption_id, 'REDEMPTION', g.distributor_id, g.coupon_id,
           g.discount_minor, g.currency, g.granted_at, g.granted_at
    from g
    where g.lock_expires_at is null),
  new_status as (
    update core.coupon c
    set status = p_status
    from g
    where c.tenant_id = (g.call).tenant_id and c.coupon_id = g.coupon_id),
  recorded as (
    insert into core.request
      (tenant_id, caller_id, request_id, idempotency_key, operation, body_hash, http_status,
       recorded_at, redemption_id, lock_expires_at)
    select (g.call).tenant_id, (g.call).caller_id, (g.call).request_id,
           (g.call).idempotency_key, (g.call).operation, (g.call).body_hash, 200, g.granted_at,
           g.redemption_id, g.lock_expires_at
    from g)
  select array_agg(rules.succeed_with_grant(
           (g.call).ordinal, g.redemption_id, g.coupon_id, g.discount_amount, g.currency,
           g.lock_expires_at))
    into v_answers
  from g;
  return v_answers;
end
$$;
