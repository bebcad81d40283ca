-- Expires the coupons of a batch with numbers after p_after, up to p_last. Returns the number it
-- reached, see rules.hold_range.
create or replace function rules.expire_range(
  p_batch core.batch, p_after int, p_last int, p_now timestamptz)
returns int
language plpgsql volatile as $$
declare
  v_held  record := rules.hold_range(p_batch, p_after, p_last);
begin
  perform rules.expire_coupons(p_batch.tenant_id, p_batch.distributor_id, array(
    select c.coupon_id
    from unnest(v_held.coupons) c
    where c.status = 'ISSUED' and c.valid_to <= p_now));
  return v_held.reached;
end
$$;
