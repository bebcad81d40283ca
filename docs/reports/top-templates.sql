-- Which templates cost most, and what share of the order do they take off? The last 7 days.
-- Counts redemptions that were not reversed. average_percent is the discount of all orders as a
-- share of their totals. It leaves out redemptions whose till sent no order_amount.
select tenant, template, currency, count(*) as redemptions, sum(discount_amount) as net,
       round(100.0 * sum(discount_amount) filter (where order_amount is not null)
         / nullif(sum(order_amount), 0), 1) as average_percent
from report.redemption
where redemption_key >= report.make_key(current_date - 7)
  and status = 'REDEEMED'
  and tenant in (select tenant from report.tenant where not is_sandbox)
group by 1, 2, 3
order by tenant, net desc, template;
