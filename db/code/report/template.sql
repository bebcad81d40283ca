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
comment on view report.template is
  'Templates; amounts in major units. merchants is null if all merchants are covered.';
