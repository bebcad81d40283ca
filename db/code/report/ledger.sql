-- A query may begin at the ledger entry (the newest ones, a day) or at the redemption (a merchant,
-- a coupon, an order). `= any (array[…])` leaves the planner one way to join the two, in either
-- direction: look up each row by its ID. An `=` would also allow a hash of a whole table. The other
-- tables that grow are looked up row by row, by lateral subqueries with a limit. So these plans
-- need no statistics. See "Plans" in docs/design.md.
create or replace view report.ledger as
select t.external_id as tenant, rules.format_id('led', l.entry_id) as entry, l.entry_type::text,
       rules.format_id('red', r.redemption_id) as redemption,
       rules.format_id('rvs', v.reversal_id) as reversal,
       rules.format_id('cpn', r.coupon_id) as coupon, b.external_id as batch,
       x.external_id as template, m.external_id as merchant, d.external_id as distributor,
       r.store::text, r.terminal::text, r.order_id::text,
       rules.format_amount(r.order_minor, c.decimals, 'major') as order_amount,
       rules.format_amount(l.amount_minor, c.decimals, 'major') as discount_amount, l.currency,
       l.occurred_at::timestamptz,
       l.recorded_at::timestamptz, l.tenant_id, l.entry_id as entry_key, k.external_id as maker,
       r.redemption_id as redemption_key, r.coupon_id as coupon_key
from core.ledger_entry l
left join lateral (
  select v.reversal_id, v.redemption_id
  from core.reversal v
  where v.reversal_id = l.entry_id and v.tenant_id = l.tenant_id
  limit 1) v on true
left join (core.redemption r join core.merchant m on m.merchant_id = r.merchant_id)
  on r.redemption_id = any (array[l.entry_id, v.redemption_id])
     and r.tenant_id = any (array[l.tenant_id])
     and l.entry_id = any (array[r.redemption_id, (
       select w.reversal_id
       from core.reversal w
       where w.redemption_id = r.redemption_id and w.tenant_id = r.tenant_id)])
left join lateral (
  select c.batch_id
  from core.coupon c
  where c.coupon_id = r.coupon_id and c.tenant_id = r.tenant_id
  limit 1) u on true
left join core.batch b on b.batch_id = u.batch_id
left join core.template x on x.tenant_id = b.tenant_id and x.template_id = b.template_id
left join core.party k on k.tenant_id = b.tenant_id and k.party_id = b.maker_id
left join core.party d on d.tenant_id = l.tenant_id and d.party_id = l.distributor_id
left join core.tenant t on t.tenant_id = l.tenant_id
left join core.currency c on c.currency = l.currency;
comment on view report.ledger is '@primaryKey tenant_id,entry_key
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant_id,redemption_key) references report.redemption (tenant_id,redemption_key)
@foreignKey (tenant_id,coupon_key) references report.coupon (tenant_id,coupon_key)
@foreignKey (tenant,batch) references report.batch (tenant,batch)
@foreignKey (tenant,template) references report.template (tenant,template)
@foreignKey (tenant,merchant) references report.merchant (tenant,merchant)
@foreignKey (tenant,distributor) references report.party (tenant,party)
@foreignKey (tenant,maker) references report.party (tenant,party)
Redemptions and reversals as ledger entries, negative for reversals; amounts in major units. Fast:
order by recorded_at; a range of recorded_at; a merchant; an order_id; report.find_ledger(ID). The
entries of a business day are in report.posting.';
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
comment on column report.ledger.tenant_id is 'Internal key of the tenant.';
comment on column report.ledger.entry_key is
  'UUID of entry, for searches: entry_key = report.parse_id(''led_…'').';
comment on column report.ledger.maker is
  'External ID of the party that made the batch, pty_….';
comment on column report.ledger.redemption_key is
  'UUID of redemption. report.find_ledger(''red_…'') searches by it.';
comment on column report.ledger.coupon_key is
  'UUID of coupon. report.find_ledger(''cpn_…'') searches by it.';
