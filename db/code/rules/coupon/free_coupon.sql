-- Frees a coupon whose lock or redemption has ended. It becomes ISSUED again, or EXPIRED with an
-- event if valid_to has passed. The event's time is the later of valid_to and the end of the lock
-- or redemption, even if this runs later. The coupon never becomes CREATED, because only released
-- coupons are locked.
create or replace function rules.free_coupon(p_coupon core.coupon, p_freed_at timestamptz)
returns void
language plpgsql volatile as $$
declare
  v_is_expired  boolean := p_coupon.valid_to <= clock_timestamp();
begin
  update core.coupon c
  set status = case when v_is_expired then 'EXPIRED' else 'ISSUED' end
  where c.tenant_id = p_coupon.tenant_id and c.coupon_id = p_coupon.coupon_id;
  if v_is_expired then
    perform rules.write_event(
      p_coupon.tenant_id, rules.make_id(), 'coupon.expired',
      (rules.find_batch_of_coupon(p_coupon.tenant_id, p_coupon.coupon_id)).distributor_id, null,
      p_coupon.coupon_id, greatest(p_coupon.valid_to, p_freed_at));
  end if;
end
$$;
