create or replace view report.template as
select t.external_id as tenant, x.external_id as template, x.name, m.external_id as maker,
       d.external_id as distributor, x.currency, x.discount_type,
       rules.format_amount(x.discount_minor, c.decimals, 'major') as discount_amount,
       x.discount_percent,
       rules.format_amount(x.max_discount_minor, c.decimals, 'major') as max_discount_amount,
       rules.format_amount(x.min_order_minor, c.decimals, 'major') as min_order_amount, x.skus,
       case when not x.is_for_all_merchants then array(
         select h.external_id
         from core.template_merchant s
         join core.merchant h on h.tenant_id = s.tenant_id and h.merchant_id = s.merchant_id
         where s.tenant_id = x.tenant_id and s.template_id = x.template_id
         order by h.external_id) end as merchants,
       x.valid_from::timestamptz, x.valid_to::timestamptz, x.lock_ttl_seconds, x.after_reversal,
       x.created_at
from core.template x
join core.tenant t using (tenant_id)
join core.currency c using (currency)
join core.party m on m.tenant_id = x.tenant_id and m.party_id = x.maker_id
left join core.party d on d.tenant_id = x.tenant_id and d.party_id = x.distributor_id;
comment on view report.template is '@primaryKey tenant,template
@foreignKey (tenant) references report.tenant (tenant)
@foreignKey (tenant,maker) references report.party (tenant,party)
@foreignKey (tenant,distributor) references report.party (tenant,party)
Templates; amounts in major units. merchants is null if all merchants are covered.';
comment on column report.template.tenant is 'External ID, ten_….';
comment on column report.template.template is 'External ID, tpl_….';
comment on column report.template.name is 'As provisioned; need not be unique.';
comment on column report.template.maker is
  'External ID of the party that may submit batches of it, pty_….';
comment on column report.template.distributor is
  'Distributor of batches that name none, pty_…. Null: the maker.';
comment on column report.template.currency is
  'ISO 4217 code. It sets the decimals of the amounts in this row.';
comment on column report.template.discount_type is 'fixed or percent.';
comment on column report.template.discount_amount is
  'Fixed discount in major units. Null: percent.';
comment on column report.template.discount_percent is
  'Percent of the order, up to four decimals. Null: fixed.';
comment on column report.template.max_discount_amount is
  'Most that a percentage grants, in major units. Null: no limit.';
comment on column report.template.min_order_amount is
  'Smaller orders are refused; in major units. Null: no minimum.';
comment on column report.template.skus is
  'Only order lines with these SKUs count. Null: the whole order counts.';
comment on column report.template.merchants is
  'External IDs of the merchants that may redeem, mch_…. Null: all of the tenant.';
comment on column report.template.valid_from is 'First moment of the validity.';
comment on column report.template.valid_to is 'First moment after the validity.';
comment on column report.template.lock_ttl_seconds is 'Seconds until a lock expires.';
comment on column report.template.after_reversal is
  'consumed: a reversed coupon stays REDEEMED. reissued: it is ISSUED again.';
comment on column report.template.created_at is 'When apply first declared it.';
