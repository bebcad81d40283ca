-- Locks the rows of the coupons of a batch with numbers after p_after, up to p_last, without those
-- that are EXPIRED or VOIDED, and returns them. If another session holds a coupon, reached is the
-- number before it, and nothing behind it is returned: the next step starts at that coupon.
--
-- Also locks LOCKED and REDEEMED coupons. A concurrent cancel or reverse may have decided before
-- this step. Without the row lock, it would make the coupon ISSUED after this step has passed it.
create or replace function rules.hold_range(
  p_batch core.batch, p_after int, p_last int, out reached int, out coupons core.coupon[])
language plpgsql volatile as $$
begin
  with held as (
    select c
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
      and c.number not in (select (h.c).number from held h))
  select r.number, array(select h.c from held h where (h.c).number <= r.number)
    into hold_range.reached, hold_range.coupons
  from reached r;
end
$$;
