-- How long after the release of their batch are coupons redeemed? Redemptions of the last 7 days.
-- A redemption that was reversed later counts too.
with redeemed as materialized (
  select tenant, batch, redeemed_at
  from report.redemption
  where redemption_key >= report.make_key(current_date - 7)
    and redeemed_at is not null
    and tenant in (select tenant from report.tenant where not is_sandbox)),
waited as (
  select tenant, b.template, extract(epoch from r.redeemed_at - b.allocated_at) / 86400 as days
  from redeemed r
  join report.batch b using (tenant, batch))
select tenant, template, count(*) as redemptions,
       round(percentile_cont(0.5) within group (order by days)::numeric, 1) as median_days,
       round(percentile_cont(0.9) within group (order by days)::numeric, 1) as p90_days,
       round(100.0 * count(*) filter (where days < 7) / count(*), 1) as percent_in_first_week
from waited
group by 1, 2
order by tenant, redemptions desc, template;
