-- Writes the granted decisions: the redemptions as p_status (LOCKED or REDEEMED), the coupons'
-- states and, for redeems, the events and ledger entries. One statement, because the triggers
-- compare the tables at the end of each statement.
create or replace function rules.write_redemptions(p_decisions core.decision[], p_status text)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_decision    core.decision;
  v_is_granted  boolean := false;
begin
  foreach v_decision in array p_decisions loop
    if (v_decision.terms).redemption_id is not null then
      v_is_granted := true;
      if (v_decision.terms).lapsed_id is not null then
        perform rules.lapse_lock(
          (v_decision.call).tenant_id, (v_decision.terms).lapsed_id,
          (v_decision.terms).granted_at);
      end if;
    end if;
  end loop;
  if not v_is_granted then
    return;
  end if;

  with granted as (
    select (d.call).tenant_id, (d.call).caller_id, (d.call).request_id, (d.call).args, (d.terms).*
    from unnest(p_decisions) d
    where (d.terms).redemption_id is not null),
  new_redemption as (
    insert into core.redemption
      (tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id, status,
       currency, discount_minor, order_minor, store, terminal, order_id, started_at,
       lock_expires_at, redeemed_at)
    select g.tenant_id, g.redemption_id, g.coupon_id, g.merchant_id, g.caller_id, g.request_id,
           p_status, g.currency, g.discount_minor, g.order_minor, g.args ->> 'store',
           g.args ->> 'terminal', g.args ->> 'order_id', g.granted_at,
           case p_status when 'LOCKED' then g.lock_expires_at end,
           case p_status when 'REDEEMED' then g.granted_at end
    from granted g),
  new_event as (
    insert into core.event
      (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
    select g.tenant_id, g.redemption_id, 'coupon.redeemed', g.distributor_id, g.coupon_id,
           g.granted_at, clock_timestamp()
    from granted g
    where p_status = 'REDEEMED'),
  new_ledger_entry as (
    insert into core.ledger_entry
      (tenant_id, entry_id, entry_type, distributor_id, amount_minor, currency, recorded_at)
    select g.tenant_id, g.redemption_id, 'REDEMPTION', g.distributor_id, g.discount_minor,
           g.currency, clock_timestamp()
    from granted g
    where p_status = 'REDEEMED')
  update core.coupon c
  set status = p_status
  from granted g
  where c.tenant_id = g.tenant_id and c.coupon_id = g.coupon_id;
end
$$;
comment on function rules.write_redemptions(core.decision[], text) is
  'Writes the redemptions that were granted.';
