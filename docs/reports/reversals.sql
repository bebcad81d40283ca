-- Which stores reverse an unusual share of their redemptions? The last 30 days.
-- A high share can mean fraud: coupons that are redeemed, paid out and reversed. A reversal counts
-- on its own day, so a store that reverses older redemptions can have more than 100 percent.
select tenant, merchant, store, currency,
       sum(redemption_count) as redemptions, sum(reversal_count) as reversals,
       round(100.0 * sum(reversal_count) / nullif(sum(redemption_count), 0), 1) as percent_reversed,
       -sum(reversal_amount) as reversed
from report.daily_store
where business_date > current_date - 30
  and tenant in (select tenant from report.tenant where not is_sandbox)
group by 1, 2, 3, 4
having sum(reversal_count) > 0
order by percent_reversed desc nulls first, reversals desc, tenant, merchant, store;
