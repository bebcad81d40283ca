create or replace view report.statement as
select t.external_id as tenant, d.external_id as distributor, s.business_date, s.closed_at,
       s.ready_at, s.entry_count, s.detail_bytes, s.detail_sha256,
       s.summary_rows, s.summary_bytes, s.summary_sha256, s.is_one_of_several
from core.statement s
left join core.tenant t using (tenant_id)
left join core.party d on d.tenant_id = s.tenant_id and d.party_id = s.distributor_id;
comment on view report.statement is '@primaryKey tenant,distributor,business_date
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,distributor) references report.party (tenant,party)
Closed business days and their files. Fast: a distributor with a range of business_date.';
comment on column report.statement.tenant is 'External ID, ten_….';
comment on column report.statement.distributor is
  'External ID of the party that gets the statements, pty_….';
comment on column report.statement.business_date is
  'Local day in the distributor''s time zone (report.party), 23 to 25 hours long.';
comment on column report.statement.closed_at is 'From then on no entry can join the day.';
comment on column report.statement.ready_at is
  'When the files became available for download. Null: not yet.';
comment on column report.statement.entry_count is
  'Lines of detail.csv without its header. 0: a day without movements.';
comment on column report.statement.detail_bytes is 'Size of detail.csv. Null until ready.';
comment on column report.statement.detail_sha256 is
  'Of detail.csv in lower-case hex; also the etag. Null until ready.';
comment on column report.statement.summary_rows is
  'Lines of summary.csv without its header. Null until ready.';
comment on column report.statement.summary_bytes is 'Size of summary.csv. Null until ready.';
comment on column report.statement.summary_sha256 is
  'Of summary.csv in lower-case hex; also the etag. Null until ready.';
comment on column report.statement.is_one_of_several is
  'True: several parties had a ledger book when the day was closed, so in Variant A a download '
  'names its distributor.';
