-- Performs the locks (p_status LOCKED) or the redeems (REDEEMED) of a group: locks their rows, then
-- decides, writes, answers and records in one statement. It is one statement because starting one
-- takes longer than writing the rows of a call, and because the triggers compare the tables at its
-- end. The ledger entry of a redeem is also its event. Only a grant has a redemption_id, and only
-- that of a lock has lock_expires_at.
create or replace function rules.perform_redemptions(
  p_calls core.call[], p_ordinals int[], p_status text)
returns core.outcome[]
language plpgsql volatile as $$
declare
  v_hold      record := rules.hold_group(p_calls, p_ordinals);
  v_held      int[] := coalesce(v_hold.held, '{}');
  v_now       timestamptz;
  v_outcomes  core.outcome[];
begin
  -- equivalent mutant (condition true): it only saves a read
  if v_hold.is_locked then
    v_held := rules.lapse_group_locks(p_calls, v_held);
  end if;
  v_held := rules.share_redemptions(p_calls[1], v_held);
  v_now := clock_timestamp();
  with decided as materialized (
    select d.call, d.refusal, d.merchant_id, d.coupon_id, d.distributor_id, d.currency, d.decimals,
           d.discount_minor, d.order_minor, (d.call).ordinal, (d.call).tenant_id,
           (d.call).caller_id, (d.call).request_id, (d.call).args,
           case when d.is_granted then rules.make_id() end as redemption_id,
           case p_status when 'LOCKED' then d.lock_ends_at end as lock_expires_at
    from rules.decide_redemptions(p_calls, p_ordinals, v_held, '{}', v_now) d),
  new_redemption as (
    insert into core.redemption
      (tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id, status,
       currency, discount_minor, order_minor, store, terminal, order_id, started_at,
       lock_expires_at, redeemed_at)
    select g.tenant_id, g.redemption_id, g.coupon_id, g.merchant_id, g.caller_id, g.request_id,
           p_status, g.currency, g.discount_minor, g.order_minor, g.args ->> 'store',
           g.args ->> 'terminal', g.args ->> 'order_id', v_now, g.lock_expires_at,
           case p_status when 'REDEEMED' then v_now end
    from decided g
    where g.redemption_id is not null),
  new_ledger_entry as (
    insert into core.ledger_entry
      (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency,
       occurred_at, recorded_at)
    select g.tenant_id, g.redemption_id, 'REDEMPTION', g.distributor_id, g.coupon_id,
           g.discount_minor, g.currency, v_now, v_now
    from decided g
    where g.redemption_id is not null and g.lock_expires_at is null),
  new_status as (
    update core.coupon c
    set status = p_status
    from decided g
    where c.tenant_id = g.tenant_id and c.coupon_id = g.coupon_id and g.redemption_id is not null),
  answered as materialized (
    select d.call, d.ordinal, d.tenant_id, d.caller_id, d.request_id,
           case when d.redemption_id is null then d.refusal else rules.render_grant(
             d.call, d.redemption_id, d.coupon_id, d.discount_minor, d.currency, d.decimals,
             d.lock_expires_at)
           end as answer,
           case when (d.refusal).code is not null then rules.find_subject(d.call) end as subject
    from decided d),
  recorded as (
    insert into core.request
      (tenant_id, caller_id, request_id, idempotency_key, operation, body_hash, http_status,
       response, recorded_at, coupon_id, merchant_id, store)
    select a.tenant_id, a.caller_id, a.request_id, (a.call).idempotency_key, (a.call).operation,
           (a.call).body_hash, (a.answer).http_status, (a.answer).body, v_now,
           (a.subject).coupon_id, (a.subject).merchant_id, (a.subject).store
    from answered a
    where rules.is_final(a.call, a.answer))
  select array_agg((a.ordinal, a.answer, false)::core.outcome) into v_outcomes from answered a;
  return v_outcomes;
end
$$;
