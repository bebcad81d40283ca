-- The ledger entries of business days in the order of their postings, with what the files show.
--
-- All joins are left joins, though each row has its match. So the planner can only begin with the
-- postings, and looks up the other rows one by one. With inner joins, a planner that knows nothing
-- about the tables may begin anywhere: 171 lines took longer than the statement_timeout. An entry
-- whose rows are missing would have nulls here; core.statement_line then refuses the summary.
create or replace view rules.posted_entry as
select p.tenant_id, p.distributor_id, p.business_date, p.number, p.first_number, l.entry_id,
       l.entry_type, l.amount_minor, l.currency, l.recorded_at, l.occurred_at, v.reversal_id,
       r.redemption_id, l.coupon_id, r.merchant_id, b.template_id,
       b.external_id as batch, r.order_minor, r.store::text, r.terminal::text,
       r.order_id::text, c.batch_id
from rules.posting p
left join core.ledger_entry l on l.tenant_id = p.tenant_id and l.event_seq = p.event_seq
left join core.reversal v on v.tenant_id = p.tenant_id and v.reversal_id = l.entry_id
left join core.redemption r
  on r.tenant_id = p.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
left join core.coupon c on c.tenant_id = p.tenant_id and c.coupon_id = l.coupon_id
left join core.batch b on b.tenant_id = p.tenant_id and b.batch_id = c.batch_id;
