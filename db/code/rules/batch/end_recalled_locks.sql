-- Forgets the coupons of a recall that were LOCKED and whose locks have ended. Returns how many of
-- them were voided, and whether others are still LOCKED.
create or replace function rules.end_recalled_locks(
  p_batch core.batch, out voided int, out is_waiting boolean)
language plpgsql volatile as $$
begin
  with ended as (
    delete from core.recalled_lock r
    using core.coupon c
    where r.tenant_id = p_batch.tenant_id
      and r.batch_id = p_batch.batch_id
      and c.tenant_id = r.tenant_id
      and c.coupon_id = r.coupon_id
      and c.status <> 'LOCKED'
    returning c.status)
  select count(*) into end_recalled_locks.voided from ended e where e.status = 'VOIDED';
  is_waiting := exists (
    select
    from core.recalled_lock r
    where r.tenant_id = p_batch.tenant_id and r.batch_id = p_batch.batch_id);
end
$$;
