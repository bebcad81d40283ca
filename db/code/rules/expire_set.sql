-- Makes held coupons EXPIRED and writes an event for each.
create or replace function rules.expire_set(
  p_tenant_id int, p_distributor_id int, p_now timestamptz, p_coupons uuid[])
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  update core.coupon c
  set status = 'EXPIRED'
  where c.tenant_id = p_tenant_id and c.coupon_id = any (p_coupons);
  insert into core.event
    (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
  select p_tenant_id, rules.new_id(), 'coupon.expired', p_distributor_id, u.coupon_id, p_now, clock_timestamp()
  from unnest(p_coupons) u (coupon_id);
end
$$;
comment on function rules.expire_set(int, int, timestamptz, uuid[]) is 'Makes coupons EXPIRED.';
