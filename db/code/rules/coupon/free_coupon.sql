-- A coupon whose lock or redemption is over goes back to ISSUED, or to EXPIRED when valid_to has passed,
-- which is then told: as of when it was free and valid_to had passed, however late that is written. Only released coupons
-- were ever locked.
create or replace function rules.free_coupon(
  p_coupon core.coupon, p_distributor_id int, p_freed_at timestamptz)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_is_expired  boolean := p_coupon.valid_to <= clock_timestamp();
begin
  update core.coupon c
  set status = case when v_is_expired then 'EXPIRED' else 'ISSUED' end
  where c.tenant_id = p_coupon.tenant_id and c.coupon_id = p_coupon.coupon_id;
  if v_is_expired then
    perform rules.write_event(
      p_coupon.tenant_id, rules.make_id(), 'coupon.expired', p_distributor_id, null, p_coupon.coupon_id,
      greatest(p_coupon.valid_to, p_freed_at));
  end if;
end
$$;
comment on function rules.free_coupon(core.coupon, int, timestamptz) is 'Gives a coupon back: ISSUED, or EXPIRED past valid_to.';
