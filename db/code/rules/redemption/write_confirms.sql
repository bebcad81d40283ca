-- Completes the redemptions of these confirms and returns the answers. The ledger entry is also the
-- event. It is one statement, because the triggers compare the tables at its end.
create or replace function rules.write_confirms(p_grants core.grant[]) returns core.answer[]
language plpgsql volatile as $$
declare
  v_answers  core.answer[];
begin
  with g as materialized (select * from unnest(p_grants)),
  completed as (
    update core.redemption r
    set status = 'REDEEMED', redeemed_at = g.granted_at
    from g
    where r.tenant_id = (g.call).tenant_id and r.redemption_id = g.redemption_id),
  new_status as (
    update core.coupon c
    set status = 'REDEEMED'
    from g
    where c.tenant_id = (g.call).tenant_id and c.coupon_id = g.coupon_id),
  new_ledger_entry as (
    insert into core.ledger_entry
      (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency,
       occurred_at, recorded_at)
    select (g.call).tenant_id, g.redemption_id, 'REDEMPTION', g.distributor_id, g.coupon_id,
           g.discount_minor, g.currency, g.granted_at, g.granted_at
    from g)
  select array_agg(rules.succeed(
           format('{"ok":true,"redemption":"%s","status":"REDEEMED"}',
             rules.format_id('red', g.redemption_id)),
           (g.call).ordinal))
    into v_answers
  from g;
  return v_answers;
end
$$;
