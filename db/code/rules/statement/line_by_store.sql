-- The whole ledger by merchant and store: the lines of closed days, and each entry that is in none
-- of them. Sums for reports begin here, so they never read the entries of closed days. A question
-- about one tenant reads the open days of that tenant only.
create or replace view rules.line_by_store as
select t.external_id as tenant, l.tenant_id, l.distributor_id, l.business_date, l.merchant_id,
       l.store::text, l.currency, l.redemption_count, l.redemption_minor, l.reversal_count,
       l.reversal_minor
from core.store_line l
left join core.tenant t on t.tenant_id = l.tenant_id
union all
select t.external_id, t.tenant_id, e.distributor_id, e.business_date, r.merchant_id, r.store,
       e.currency, e.redemption_count, e.redemption_minor, e.reversal_count, e.reversal_minor
from core.tenant t
cross join lateral rules.list_open_entries(t.tenant_id) e
left join lateral (
  select r.merchant_id, r.store::text
  from core.redemption r
  where r.redemption_id = e.redemption_id and r.tenant_id = t.tenant_id
  limit 1) r on true;
