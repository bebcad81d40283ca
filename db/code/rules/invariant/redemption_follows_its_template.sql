-- The matching items of a template with SKUs are not stored. Their total may be smaller than the
-- order, or larger, because the amount of the order is the caller's. So such a discount is only
-- compared with its limits. This is written from the rules of discounts and does not use
-- rules.compute_discount, so it finds mistakes there. Terms are fixed once a template has a batch.
-- Left joins and a subquery make the planner begin with the redemptions and look up their coupons,
-- instead of reading all coupons.
create or replace view rules.redemption_follows_its_template as
select 'redemption follows its template' as invariant, r.tenant_id,
       rules.format_id('red', r.redemption_id) as subject
from core.redemption r
left join core.batch b
  on b.tenant_id = r.tenant_id and b.batch_id = (
    select c.batch_id
    from core.coupon c
    where c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id)
left join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
cross join lateral (
  select least(
    t.discount_minor,
    case when t.skus is null then round(r.order_minor * t.discount_percent * 0.01) end,
    t.max_discount_minor, r.order_minor) as minor) most
where r.currency <> t.currency
   or (r.order_minor >= t.min_order_minor) is false
   or r.order_minor is null and (t.min_order_minor is not null or t.discount_type = 'percent')
   or r.discount_minor > most.minor
   or t.skus is null and r.discount_minor < most.minor;
comment on view rules.redemption_follows_its_template is
  'Redemptions whose currency, minimum order or discount is not that of their template. A '
  'discount on SKUs is only compared with its limits.';
