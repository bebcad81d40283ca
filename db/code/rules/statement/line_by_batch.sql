-- The whole ledger by distributor and batch, as rules.line_by_store has it by store. The batch of
-- an open entry is looked up only if it is asked for.
create or replace view rules.line_by_batch as
select t.external_id as tenant, l.tenant_id, l.distributor_id, l.business_date, l.batch_id,
       x.currency, l.redemption_count, l.redemption_minor, l.reversal_count, l.reversal_minor
from core.batch_line l
left join core.tenant t on t.tenant_id = l.tenant_id
left join core.batch b on b.tenant_id = l.tenant_id and b.batch_id = l.batch_id
left join core.template x on x.tenant_id = b.tenant_id and x.template_id = b.template_id
union all
select t.external_id, t.tenant_id, e.distributor_id, e.business_date, (
         select c.batch_id
         from core.coupon c
         where c.coupon_id = e.coupon_id and c.tenant_id = t.tenant_id),
       e.currency, e.redemption_count, e.redemption_minor, e.reversal_count, e.reversal_minor
from core.tenant t
cross join lateral rules.list_open_entries(t.tenant_id) e;
