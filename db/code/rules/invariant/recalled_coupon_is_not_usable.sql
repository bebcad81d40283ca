create or replace view rules.recalled_coupon_is_not_usable as
select 'recalled coupon is not usable' as invariant, c.tenant_id,
       rules.format_id('cpn', c.coupon_id) as subject
from core.batch b
join core.coupon c on c.tenant_id = b.tenant_id and c.batch_id = b.batch_id
where b.recall_finished_at is not null
  and (c.status = 'LOCKED' or c.status = 'ISSUED' and c.valid_to > b.recall_finished_at);
comment on view rules.recalled_coupon_is_not_usable is
  'Coupons of a finished recall that are LOCKED, or that are ISSUED and were valid when it '
  'finished.';
