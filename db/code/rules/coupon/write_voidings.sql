-- Makes coupons of a batch VOIDED and writes a voiding and an event for each. The caller holds
-- their rows. Without a merchant: an administrator or the recall of the batch.
--
-- No index can serve `is not distinct from`, so the planner cannot read all coupons of the tenant.
create or replace function rules.write_voidings(
  p_batch core.batch, p_coupons uuid[], p_merchant_id int, p_caller_id int, p_reason text,
  p_voided_at timestamptz)
returns void
language plpgsql volatile as $$
begin
  with voiding as (
    insert into core.voiding
      (tenant_id, coupon_id, batch_id, merchant_id, caller_id, reason, voided_at)
    select p_batch.tenant_id, u.coupon_id, p_batch.batch_id, p_merchant_id, p_caller_id, p_reason,
           p_voided_at
    from unnest(p_coupons) u (coupon_id))
  update core.coupon c
  set status = 'VOIDED'
  where c.coupon_id = any (p_coupons) and c.tenant_id is not distinct from p_batch.tenant_id;
  insert into core.event
    (tenant_id, event_id, event_type, party_id, coupon_id, occurred_at, recorded_at)
  select p_batch.tenant_id, rules.make_id(), 'coupon.voided', p_batch.distributor_id, u.coupon_id,
         p_voided_at, clock_timestamp()
  from unnest(p_coupons) u (coupon_id);
end
$$;
