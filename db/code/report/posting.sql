create or replace view report.posting as
select t.external_id as tenant, d.external_id as distributor, p.business_date, p.number,
       rules.format_id('led', p.entry_id) as entry, p.tenant_id, p.entry_id as entry_key
from core.posting p
join core.tenant t using (tenant_id)
join core.party d on d.tenant_id = p.tenant_id and d.party_id = p.distributor_id;
comment on view report.posting is '@primaryKey tenant,entry
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,entry) references report.ledger (tenant,entry)
@foreignKey (tenant,distributor) references report.party (tenant,party)
The business day of each ledger entry.';
comment on column report.posting.tenant is 'External ID, ten_….';
comment on column report.posting.distributor is
  'External ID of the party that gets the statements, pty_….';
comment on column report.posting.business_date is
  'Local day in the distributor''s time zone (report.party), 23 to 25 hours long.';
comment on column report.posting.number is 'Line in detail.csv of that day, 1 to n without gaps.';
comment on column report.posting.entry is 'External ID of the ledger entry, led_….';
comment on column report.posting.tenant_id is
  'Internal key of the tenant, the first column of every index.';
comment on column report.posting.entry_key is
  'UUID of entry, for searches: entry_key = report.parse_id(''led_…'').';
