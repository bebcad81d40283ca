-- Looks up each entry by a lateral subquery with a limit, so every plan begins at the posting.
create or replace view report.posting as
select t.external_id as tenant, d.external_id as distributor, p.business_date, p.number,
       rules.format_id('led', p.entry_id) as entry, p.tenant_id, p.entry_id as entry_key,
       l.entry_type, l.redemption, l.reversal, l.coupon, l.batch, l.template, l.merchant, l.store,
       l.terminal, l.order_id, l.order_amount, l.discount_amount, l.currency, l.occurred_at,
       l.recorded_at
from rules.posting p
left join core.tenant t on t.tenant_id = p.tenant_id
left join core.party d on d.tenant_id = p.tenant_id and d.party_id = p.distributor_id
left join lateral (
  select e.*
  from report.ledger e
  where e.entry_key = p.entry_id and e.tenant_id = p.tenant_id
  limit 1) l on true;
comment on view report.posting is '@primaryKey tenant_id,entry_key
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant_id,entry_key) references report.ledger (tenant_id,entry_key)
@foreignKey (tenant,distributor) references report.party (tenant,party)
The ledger entries of each business day, numbered as in the detail file of the statement. Fast: a
distributor with a range of business_date; report.find_posting(ID).';
comment on column report.posting.tenant is 'External ID, ten_….';
comment on column report.posting.distributor is
  'External ID of the party that gets the statements, pty_….';
comment on column report.posting.business_date is
  'Local day in the distributor''s time zone (report.party), 23 to 25 hours long.';
comment on column report.posting.number is 'Line in detail.csv of that day, 1 to n without gaps.';
comment on column report.posting.entry is 'External ID of the ledger entry, led_….';
comment on column report.posting.tenant_id is 'Internal key of the tenant.';
comment on column report.posting.entry_key is
  'UUID of entry. report.find_posting(''led_…'') searches by it.';
comment on column report.posting.entry_type is 'REDEMPTION or REVERSAL.';
comment on column report.posting.redemption is
  'External ID, red_…. For a REVERSAL, the redemption that it reverses.';
comment on column report.posting.reversal is 'External ID, rvs_…. Null: the entry is a REDEMPTION.';
comment on column report.posting.coupon is 'External ID, cpn_…. Never the code.';
comment on column report.posting.batch is 'External ID, bat_….';
comment on column report.posting.template is 'External ID, tpl_….';
comment on column report.posting.merchant is 'External ID, mch_….';
comment on column report.posting.store is
  'As the till sent it. Variant A: free text. Variant B: a registered store. Null: not sent.';
comment on column report.posting.terminal is
  'As the till sent it. Variant A: free text. Variant B: registered in the store. Null: not sent.';
comment on column report.posting.order_id is
  'As the till sent it; neither checked nor unique. Null: not sent.';
comment on column report.posting.order_amount is
  'Total of the order in major units. Null: the till sent none.';
comment on column report.posting.discount_amount is 'In major units; negative for a REVERSAL.';
comment on column report.posting.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.posting.occurred_at is 'When the coupon was redeemed or reversed.';
comment on column report.posting.recorded_at is
  'When the database recorded it. Decides the business day.';
