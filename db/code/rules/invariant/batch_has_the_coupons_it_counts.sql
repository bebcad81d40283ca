create or replace view rules.batch_has_the_coupons_it_counts as
select 'batch has the coupons it counts' as invariant, b.tenant_id, b.external_id as subject
from core.batch b
left join lateral (
  select count(*) as coupons, min(c.number) as first_number, max(c.number) as last_number
  from core.coupon c
  where c.tenant_id = b.tenant_id and c.batch_id = b.batch_id) c on true
where c.coupons <> b.minted_count
   or coalesce(c.first_number, 1) <> 1
   or coalesce(c.last_number, 0) <> b.minted_count
   -- equivalent mutant (operand): a check of the table says the same
   or (b.status <> 'PENDING' and b.minted_count <> b.total_count);
comment on view rules.batch_has_the_coupons_it_counts is
  'Batches whose coupons are not numbered 1 to minted_count. Numbers are unique, so count, '
  'minimum and maximum show that none is missing. A batch that is no longer PENDING is '
  'completely minted.';
