-- Voids the unused coupons of a recalled batch with numbers after p_after, up to p_last, and
-- remembers the LOCKED ones. Returns the number it reached, see rules.hold_range, and how many it
-- voided. A coupon past its valid_to counts as EXPIRED and is left to the expiry job.
create or replace function rules.recall_range(
  p_batch core.batch, p_after int, p_last int, out reached int, out voided int)
language plpgsql volatile as $$
declare
  v_held     record := rules.hold_range(p_batch, p_after, p_last);
  v_now      timestamptz := clock_timestamp();
  v_coupons  uuid[] := array(
    select c.coupon_id
    from unnest(v_held.coupons) c
    where c.status = 'ISSUED' and c.valid_to > v_now
    order by c.number);
begin
  perform rules.write_voidings(
    p_batch, v_coupons, null, p_batch.recall_caller_id, p_batch.recall_reason, v_now);
  insert into core.recalled_lock (tenant_id, batch_id, coupon_id)
  select p_batch.tenant_id, p_batch.batch_id, c.coupon_id
  from unnest(v_held.coupons) c
  where c.status = 'LOCKED';
  reached := v_held.reached;
  voided := cardinality(v_coupons);
end
$$;
