-- Replayed ones are left out: see rules.find_place_of_coupon.
create or replace view rules.deliveries_of_a_coupon_wait_together as
select 'deliveries of a coupon wait together' as invariant, d.tenant_id,
       rules.format_id('cpn', d.coupon_id) as subject
from core.delivery d
where d.coupon_id is not null and d.parked_at is null and d.counts_for is null
group by d.tenant_id, d.party_id, d.coupon_id
having count(distinct d.is_behind) > 1;
comment on view rules.deliveries_of_a_coupon_wait_together is
  'Coupons of which some deliveries go first and some behind, so that one may overtake another. '
  'Without those that were replayed.';
