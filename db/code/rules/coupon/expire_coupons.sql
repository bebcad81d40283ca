-- Makes coupons EXPIRED and writes an event for each; the caller holds their rows. The event
-- occurred at valid_to, even if this runs later, because answers have shown EXPIRED since then.
-- rules.write_voidings says why the tenant is compared in this way.
create or replace function rules.expire_coupons(
  p_tenant_id int, p_distributor_id int, p_coupons uuid[])
returns void
language plpgsql volatile as $$
begin
  with expired as (
    update core.coupon c
    set status = 'EXPIRED'
    where c.coupon_id = any (p_coupons) and c.tenant_id is not distinct from p_tenant_id
    returning c.coupon_id, c.valid_to)
  insert into core.event
    (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
  select p_tenant_id, rules.make_id(), 'coupon.expired', p_distributor_id, x.coupon_id,
         x.valid_to, clock_timestamp()
  from expired x;
end
$$;
