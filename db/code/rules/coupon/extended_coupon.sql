-- Coupons whose end was patched, for rules.counted_batch: 1 in is_expired if the coupon is EXPIRED,
-- and 1 in is_of_ended_batch if it is unused and would be EXPIRED with its batch.
create or replace view rules.extended_coupon as
select c.tenant_id, c.batch_id, (d.status = 'EXPIRED')::int as is_expired,
       (d.status in ('ISSUED', 'EXPIRED') and b.valid_to <= statement_timestamp())::int
         as is_of_ended_batch
from core.coupon_extension x
join core.coupon c
  on c.coupon_id = any (array[x.coupon_id]) and c.tenant_id = any (array[x.tenant_id])
join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
cross join lateral (
  select rules.derive_status(
    c.status, c.valid_to,
    case c.status when 'LOCKED' then (
      select r.lock_expires_at
      from core.redemption r
      where r.coupon_id = c.coupon_id and r.tenant_id = c.tenant_id and r.ended_at is null)
    end,
    true, 'A', statement_timestamp())) d (status);
