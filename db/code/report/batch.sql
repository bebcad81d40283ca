create or replace view report.batch as
select t.external_id as tenant, b.external_id as batch, b.status, b.total_count, b.minted_count,
       x.external_id as template, m.external_id as maker, d.external_id as distributor,
       b.valid_from::timestamptz, b.valid_to::timestamptz, b.key_version, b.mint_lease_until,
       b.created_at, b.completed_at, b.allocated_at, b.codes_destroyed_at
from core.batch b
join core.tenant t using (tenant_id)
join core.template x using (tenant_id, template_id)
join core.party m on m.tenant_id = b.tenant_id and m.party_id = b.maker_id
join core.party d on d.tenant_id = b.tenant_id and d.party_id = b.distributor_id;
comment on view report.batch is '@primaryKey tenant,batch
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,template) references report.template (tenant,template)
@foreignKey (tenant,maker) references report.party (tenant,party)
@foreignKey (tenant,distributor) references report.party (tenant,party)
@foreignKey (key_version) references report.master_key (version)
Batches and their minting progress. Fast: a batch; order by created_at.';
comment on column report.batch.tenant is 'External ID, ten_….';
comment on column report.batch.batch is 'External ID, bat_….';
comment on column report.batch.status is
  'PENDING: being minted. COMPLETED: all coupons exist. ALLOCATED: released.';
comment on column report.batch.total_count is 'Coupons ordered.';
comment on column report.batch.minted_count is 'Coupons that exist, numbered 1 to minted_count.';
comment on column report.batch.template is 'External ID, tpl_….';
comment on column report.batch.maker is 'External ID of the party that submitted the batch, pty_….';
comment on column report.batch.distributor is
  'External ID of the party that gets its events and statements, pty_….';
comment on column report.batch.valid_from is
  'Start of the validity of new coupons, copied from the template.';
comment on column report.batch.valid_to is
  'First moment after the validity of new coupons, copied from the template.';
comment on column report.batch.key_version is
  'Version of the master key; the first character of each code.';
comment on column report.batch.mint_lease_until is
  'Until then one worker mints it. Null: no worker has it.';
comment on column report.batch.created_at is 'When the maker submitted it.';
comment on column report.batch.completed_at is 'When the last coupon was minted. Null: PENDING.';
comment on column report.batch.allocated_at is
  'When it was released to its distributor. Null: not released.';
comment on column report.batch.codes_destroyed_at is
  'From then on its codes cannot be derived. Null: they can be exported.';
