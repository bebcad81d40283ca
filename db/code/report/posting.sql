create or replace view report.posting as
select t.external_id as tenant, d.external_id as distributor, p.business_date, p.number,
       rules.format_id('led', p.entry_id) as entry, p.tenant_id, p.entry_id as entry_key
from core.posting p
join core.tenant t using (tenant_id)
join core.party d on d.tenant_id = p.tenant_id and d.party_id = p.distributor_id;
comment on view report.posting is 'The business day of each ledger entry.';
