create or replace view report.batch as
select b.tenant, b.external_id as batch, b.status, b.total_count, b.minted_count,
       b.template, m.external_id as maker, d.external_id as distributor,
       b.valid_from::timestamptz, b.valid_to::timestamptz, b.key_version, b.mint_lease_until,
       b.created_at, b.completed_at, b.allocated_at, b.codes_destroyed_at,
       b.issued_count, b.locked_count, b.redeemed_count, b.expired_count, b.voided_count,
       b.redemption_count, b.reversal_count, b.currency,
       rules.format_amount(b.net_minor::bigint, c.decimals, 'major') as net_amount,
       b.usable_count * rules.format_amount(b.most_minor, c.decimals, 'major') as liability_amount,
       b.suspended_at, b.recalled_at, b.recall_voided_count, b.recall_finished_at
from rules.counted_batch b
join core.currency c on c.currency = b.currency
join core.party m on m.tenant_id = b.tenant_id and m.party_id = b.maker_id
join core.party d on d.tenant_id = b.tenant_id and d.party_id = b.distributor_id;
comment on view report.batch is '@primaryKey tenant,batch
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,template) references report.template (tenant,template)
@foreignKey (tenant,maker) references report.party (tenant,party)
@foreignKey (tenant,distributor) references report.party (tenant,party)
@foreignKey (key_version) references report.master_key (version)
Batches, their minting progress and their coupons by status now; amounts in major units. Fast:
everything. The counts read no coupons, but days × batches, voidings and the entries of open days.';
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
  'Until then one worker mints or recalls it. Null: no worker has it.';
comment on column report.batch.created_at is 'When the maker submitted it.';
comment on column report.batch.completed_at is 'When the last coupon was minted. Null: PENDING.';
comment on column report.batch.allocated_at is
  'When it was released to its distributor. Null: not released.';
comment on column report.batch.codes_destroyed_at is
  'From then on its codes cannot be derived. Null: they can be exported.';
comment on column report.batch.issued_count is
  'Unused coupons that are valid, or will be: ISSUED or, before the release in Variant B, CREATED. '
  'The five counts by status add up to minted_count.';
comment on column report.batch.locked_count is 'LOCKED coupons. An expired lock counts as gone.';
comment on column report.batch.redeemed_count is
  'REDEEMED coupons, including reversed ones if its template does not issue them again.';
comment on column report.batch.expired_count is 'EXPIRED coupons, whether or not the job has run.';
comment on column report.batch.voided_count is 'VOIDED coupons.';
comment on column report.batch.redemption_count is
  'Redemptions so far. A coupon that is issued again after a reversal can have several.';
comment on column report.batch.reversal_count is 'Reversals so far.';
comment on column report.batch.currency is
  'ISO 4217 code of the template. It sets the decimals of the amounts in this row.';
comment on column report.batch.net_amount is
  'Discounts redeemed so far less those reversed, in major units.';
comment on column report.batch.liability_amount is
  'The most that its ISSUED and LOCKED coupons can still cost, in major units: a percentage at its '
  'limit. Of a recalled batch only the LOCKED ones. 0: not released. Null: a percentage without a '
  'limit.';
comment on column report.batch.suspended_at is
  'From then on its coupons cannot be locked or redeemed. Null: they can.';
comment on column report.batch.recalled_at is
  'From then on its unused coupons are being voided. Null: not recalled.';
comment on column report.batch.recall_voided_count is
  'Coupons that the recall has voided: of those that were unused or LOCKED when it began.';
comment on column report.batch.recall_finished_at is
  'From then on none of its coupons is unused or LOCKED. Null: not recalled, or still running.';
