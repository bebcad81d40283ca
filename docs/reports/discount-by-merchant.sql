-- What does each merchant redeem in each month, net of reversals? The last twelve months.
-- Months are those of the business dates. The current month has open days, so it still grows.
select tenant, merchant, date_trunc('month', business_date::timestamp)::date as month, currency,
       sum(redemption_count) as redemptions, sum(reversal_count) as reversals,
       sum(redemption_amount) as redeemed, sum(reversal_amount) as reversed,
       sum(net_amount) as net
from report.daily_store
where business_date >= (date_trunc('month', current_date::timestamp) - interval '11 months')::date
  and tenant in (select tenant from report.tenant where not is_sandbox)
group by 1, 2, 3, 4
order by tenant, month, net desc, merchant;
