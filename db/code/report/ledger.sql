-- To find one entry quickly, search by its key, which is indexed:
-- where tenant_id = … and entry_key = report.parse_id('led_…').
create or replace view report.ledger as
select t.external_id as tenant, rules.format_id('led', l.entry_id) as entry, l.entry_type::text,
       rules.format_id('red', l.redemption_id) as redemption,
       rules.format_id('rvs', l.reversal_id) as reversal,
       rules.format_id('cpn', l.coupon_id) as coupon, b.external_id as batch,
       x.external_id as template, m.external_id as merchant, d.external_id as distributor,
       l.store, l.terminal, l.order_id,
       rules.format_amount(l.order_minor, c.decimals, 'major') as order_amount,
       rules.format_amount(l.amount_minor, c.decimals, 'major') as discount_amount, l.currency,
       l.occurred_at::timestamptz, l.recorded_at::timestamptz, l.tenant_id, l.entry_id as entry_key
from rules.ledger_entry_detail l
join core.tenant t using (tenant_id)
join core.currency c using (currency)
join core.coupon k on k.tenant_id = l.tenant_id and k.coupon_id = l.coupon_id
join core.batch b on b.tenant_id = k.tenant_id and b.batch_id = k.batch_id
join core.template x on x.tenant_id = b.tenant_id and x.template_id = b.template_id
join core.merchant m on m.tenant_id = l.tenant_id and m.merchant_id = l.merchant_id
join core.party d on d.tenant_id = l.tenant_id and d.party_id = l.distributor_id;
comment on view report.ledger is '@primaryKey tenant,entry
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,redemption) references report.redemption (tenant,redemption)
@foreignKey (tenant,coupon) references report.coupon (tenant,coupon)
@foreignKey (tenant,batch) references report.batch (tenant,batch)
@foreignKey (tenant,template) references report.template (tenant,template)
@foreignKey (tenant,merchant) references report.merchant (tenant,merchant)
@foreignKey (tenant,distributor) references report.party (tenant,party)
Redemptions and reversals as ledger entries, negative for reversals; amounts in major units.';
comment on column report.ledger.tenant is 'External ID, ten_….';
comment on column report.ledger.entry is 'External ID of the ledger entry, led_….';
comment on column report.ledger.entry_type is 'REDEMPTION or REVERSAL.';
comment on column report.ledger.redemption is
  'External ID, red_…. For a REVERSAL, the redemption that it reverses.';
comment on column report.ledger.reversal is 'External ID, rvs_…. Null: the entry is a REDEMPTION.';
comment on column report.ledger.coupon is 'External ID, cpn_…. Never the code.';
comment on column report.ledger.batch is 'External ID, bat_….';
comment on column report.ledger.template is 'External ID, tpl_….';
comment on column report.ledger.merchant is 'External ID, mch_….';
comment on column report.ledger.distributor is
  'External ID of the party that gets the statements, pty_….';
comment on column report.ledger.store is
  'As the till sent it. Variant A: free text. Variant B: a registered store. Null: not sent.';
comment on column report.ledger.terminal is
  'As the till sent it. Variant A: free text. Variant B: registered in the store. Null: not sent.';
comment on column report.ledger.order_id is
  'As the till sent it; neither checked nor unique. Null: not sent.';
comment on column report.ledger.order_amount is
  'Total of the order in major units. Null: the till sent none.';
comment on column report.ledger.discount_amount is 'In major units; negative for a REVERSAL.';
comment on column report.ledger.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.ledger.occurred_at is 'When the coupon was redeemed or reversed.';
comment on column report.ledger.recorded_at is
  'When the database recorded it. Decides the business day.';
comment on column report.ledger.tenant_id is
  'Internal key of the tenant, the first column of every index.';
comment on column report.ledger.entry_key is
  'UUID of entry, for searches: entry_key = report.parse_id(''led_…'').';
