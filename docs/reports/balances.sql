-- What did each distributor owe each maker at two dates, and what changed in between?
-- closing is opening plus redeemed plus reversed. Change the two dates in the first lines.
with period as (
  select current_date - 30 as from_date, current_date as to_date)
select tenant, distributor, maker, currency,
       coalesce(sum(net_amount) filter (where business_date < from_date), 0) as opening,
       coalesce(sum(redemption_amount) filter (where business_date >= from_date), 0) as redeemed,
       coalesce(sum(reversal_amount) filter (where business_date >= from_date), 0) as reversed,
       sum(net_amount) as closing
from report.daily_batch
cross join period
where business_date <= to_date
  and tenant in (select tenant from report.tenant where not is_sandbox)
group by 1, 2, 3, 4
order by tenant, distributor, maker, currency;
