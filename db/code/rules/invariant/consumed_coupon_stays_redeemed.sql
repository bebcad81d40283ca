create or replace view rules.consumed_coupon_stays_redeemed as
select 'consumed coupon stays redeemed' as invariant, c.tenant_id,
       rules.format_id('cpn', c.coupon_id) as subject
from core.redemption r
join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
where r.status = 'REVERSED'
  and t.after_reversal = 'consumed'
  and (c.status <> 'REDEEMED' or exists (
    select
    from core.redemption o
    where o.tenant_id = r.tenant_id
      and o.coupon_id = r.coupon_id
      and o.redemption_id <> r.redemption_id
      and o.started_at >= r.redeemed_at));
comment on view rules.consumed_coupon_stays_redeemed is
  'Coupons whose redemption was reversed under a template that does not reissue them, and that '
  'are not REDEEMED any more or were used again.';
