-- Each ledger entry with the redemption that caused it, and with the reversal if it records one. An
-- entry has the ID of the redemption or reversal that it records.
create or replace view rules.ledger_entry_detail as
select l.tenant_id, l.entry_id, l.entry_type, l.distributor_id, l.amount_minor, l.currency,
       l.recorded_at, coalesce(v.reversed_at, r.redeemed_at) as occurred_at,
       v.reversal_id, r.redemption_id, r.coupon_id, r.merchant_id, r.order_minor,
       r.store, r.terminal, r.order_id
from core.ledger_entry l
left join core.reversal v on v.tenant_id = l.tenant_id and v.reversal_id = l.entry_id
join core.redemption r
  on r.tenant_id = l.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id);
comment on view rules.ledger_entry_detail is 'Ledger entries with their redemption or reversal.';
