-- Writes the rows of granted locks or redeems, with their recorded answers, and returns their
-- outcomes. The ledger entry of a redeem is also its event. It is one statement, because the
-- triggers compare the tables at its end.
create or replace function rules.write_grants(p_grants core.grant[], p_status text)
returns core.outcome[]
language plpgsql volatile as $$
declare
  v_outcomes  core.outcome[];
begin
  if cardinality(p_grants) = 0 then
    return '{}';
  end if;
  with new_redemption as (
    insert into core.redemption
      (tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id, status,
       currency, discount_minor, order_minor, store, terminal, order_id, started_at,
       lock_expires_at, redeemed_at)
    select (g.call).tenant_id, g.redemption_id, g.coupon_id, g.merchant_id, (g.call).caller_id,
           (g.call).request_id, p_status, g.currency, g.discount_minor, g.order_minor,
           (g.call).args ->> 'store', (g.call).args ->> 'terminal', (g.call).args ->> 'order_id',
           g.granted_at, g.lock_expires_at,
           case when g.lock_expires_at is null then g.granted_at end
    from unnest(p_grants) g),
  new_ledger_entry as (
    insert into core.ledger_entry
      (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency,
       occurred_at, recorded_at)
    select (g.call).tenant_id, g.redemption_id, 'REDEMPTION', g.distributor_id, g.coupon_id,
           g.discount_minor, g.currency, g.granted_at, g.granted_at
    from unnest(p_grants) g
    where g.lock_expires_at is null),
  new_status as (
    update core.coupon c
    set status = p_status
    where c.tenant_id = p_grants[1].call.tenant_id
      and c.coupon_id = any (array(select g.coupon_id from unnest(p_grants) g))),
  answered as materialized (
    select g.call, rules.render_grant(g) as answer, g.granted_at
    from unnest(p_grants) g),
  recorded as (
    insert into core.request
      (tenant_id, caller_id, request_id, idempotency_key, operation, body_hash, http_status,
       response, recorded_at)
    select (a.call).tenant_id, (a.call).caller_id, (a.call).request_id, (a.call).idempotency_key,
           (a.call).operation, (a.call).body_hash, 200, (a.answer).body, a.granted_at
    from answered a)
  select array_agg(((a.call).ordinal, a.answer, false)::core.outcome) into v_outcomes
  from answered a;
  return v_outcomes;
end
$$;
