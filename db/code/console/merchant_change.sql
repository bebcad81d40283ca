-- Redemptions and reversals of each merchant, in the order of list_redemptions. Fast: the keys of
-- console.find_merchant, ordered by page_key, position. A lateral subquery with a limit looks up
-- each entry, so every plan begins at the pages of the merchant.
create or replace view console.merchant_change as
select t.external_id as tenant, m.external_id as merchant, c.position, l.entry_type, l.redemption,
       l.reversal, l.coupon, l.template, l.store, l.terminal, l.order_id, l.order_amount,
       l.discount_amount, l.currency, l.occurred_at, c.recorded_at::timestamptz,
       c.first_position as page_key, c.tenant_id, c.merchant_id, c.entry_id as entry_key
from rules.merchant_change c
left join core.tenant t on t.tenant_id = c.tenant_id
left join core.merchant m on m.tenant_id = c.tenant_id and m.merchant_id = c.merchant_id
left join lateral (
  select e.*
  from report.ledger e
  where e.entry_key = c.entry_id and e.tenant_id = c.tenant_id
  limit 1) l on true;
