-- Frees a coupon whose lock or redemption has ended. It becomes ISSUED again, or VOIDED if its
-- batch was recalled. If valid_to has passed, it becomes EXPIRED, also in a recalled batch, because
-- answers have shown EXPIRED since then. The time of coupon.expired is the later of valid_to and
-- the end of the lock or redemption, even if this runs later. The coupon never becomes CREATED,
-- because only released coupons are locked. The recall counts a locked coupon, also if it has not
-- reached it.
create or replace function rules.free_coupon(p_coupon core.coupon, p_freed_at timestamptz)
returns void
language plpgsql volatile as $$
declare
  v_now         timestamptz := clock_timestamp();
  v_batch       core.batch := rules.find_batch_of_coupon(p_coupon.tenant_id, p_coupon.coupon_id);
  v_is_expired  boolean := p_coupon.valid_to <= v_now;
begin
  if v_batch.recalled_at is not null and not v_is_expired then
    perform rules.write_voidings(
      v_batch, array[p_coupon.coupon_id], null, v_batch.recall_caller_id, v_batch.recall_reason,
      v_now);
    if p_coupon.status = 'LOCKED' then
      insert into core.recalled_lock (tenant_id, batch_id, coupon_id)
      values (v_batch.tenant_id, v_batch.batch_id, p_coupon.coupon_id)
      on conflict do nothing;
    end if;
    return;
  end if;
  update core.coupon c
  set status = case when v_is_expired then 'EXPIRED' else 'ISSUED' end
  where c.tenant_id = p_coupon.tenant_id and c.coupon_id = p_coupon.coupon_id;
  if v_is_expired then
    perform rules.write_event(
      p_coupon.tenant_id, rules.make_id(), 'coupon.expired', v_batch.distributor_id, null,
      p_coupon.coupon_id, greatest(p_coupon.valid_to, p_freed_at));
  end if;
end
$$;
