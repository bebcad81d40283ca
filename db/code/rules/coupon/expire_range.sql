-- Expires the coupons of a batch with numbers after p_after, up to p_last. Returns the number it
-- reached: less than p_last if another session holds a coupon. The next call starts at that coupon.
--
-- Locks the rows of all coupons of the range, including LOCKED and REDEEMED ones. A concurrent
-- cancel or reverse may have read the clock before valid_to. Without the row lock, that operation
-- would make the coupon ISSUED after this step has passed it, and the coupon would never expire.
create or replace function rules.expire_range(
  p_batch core.batch, p_after int, p_last int, p_now timestamptz)
returns int
language plpgsql volatile as $$
declare
  v_found  record;
begin
  with held as (
    select c.number, c.coupon_id, c.status, c.valid_to
    from core.coupon c
    where c.tenant_id = p_batch.tenant_id
      and c.batch_id = p_batch.batch_id
      and c.number > p_after
      and c.number <= p_last
      and c.status not in ('EXPIRED', 'VOIDED')
    for no key update skip locked),
  reached as (
    select coalesce(min(c.number) - 1, p_last) as number
    from core.coupon c
    where c.tenant_id = p_batch.tenant_id
      and c.batch_id = p_batch.batch_id
      and c.number > p_after
      and c.number <= p_last
      and c.status not in ('EXPIRED', 'VOIDED')
      and c.number not in (select h.number from held h))
  select r.number as reached,
         array(
           select h.coupon_id
           from held h
           where h.number <= r.number and h.status = 'ISSUED' and h.valid_to <= p_now) as coupons
    into v_found
  from reached r;
  perform rules.expire_coupons(p_batch.tenant_id, p_batch.distributor_id, v_found.coupons);
  return v_found.reached;
end
$$;
