-- Problems of a template of a provisioning document: references that the tenant does not have,
-- amounts with more decimals than the currency, and changes of fields that are fixed once the
-- template has a batch.
create or replace function rules.find_template_problems(
  p_tenant core.tenant, p_template jsonb, p_wanted core.template, p_stored core.template,
  p_path text)
returns jsonb
language sql stable
return (
  select coalesce(jsonb_agg(
           jsonb_build_object('path', p_path || '.' || f.field, 'message', f.message)), '[]')
  from (
    select 'maker' as field, 'no such party in this tenant' as message
    where p_wanted.maker_id is null
    union all
    select 'distributor', 'no such party in this tenant'
    where p_wanted.distributor_id is null and p_template ->> 'distributor' is not null
    -- equivalent mutant (union): the lines before it are different
    union all
    select 'currency', 'is not an ISO 4217 currency'
    where not exists (select from core.currency c where c.currency = p_wanted.currency)
    union all
    select a.field, rules.describe_decimals(p_wanted.currency, p_tenant.amount_unit)
    from (values
      ('discount.amount', p_template #>> '{discount,amount}', p_wanted.discount_minor),
      ('discount.max_amount', p_template #>> '{discount,max_amount}', p_wanted.max_discount_minor),
      ('min_order_amount', p_template ->> 'min_order_amount', p_wanted.min_order_minor))
      a (field, given, minor)
    where a.given is not null
      and a.minor is null
      and exists (select from core.currency c where c.currency = p_wanted.currency)
    union all
    select format('merchants.%s', m.ordinality - 1), 'no such merchant in this tenant'
    from jsonb_array_elements_text(p_template -> 'merchants') with ordinality m
    where not exists (
      select
      from core.merchant x
      where x.tenant_id = p_tenant.tenant_id and x.external_id = m.value)
    union all
    select c.field, 'cannot change: the template has a batch'
    from (values
      ('maker', p_wanted.maker_id is distinct from p_stored.maker_id),
      ('currency', p_wanted.currency is distinct from p_stored.currency),
      ('discount',
        (p_wanted.discount_type, p_wanted.discount_minor,
         p_wanted.discount_percent, p_wanted.max_discount_minor)
        is distinct from
        (p_stored.discount_type, p_stored.discount_minor,
         p_stored.discount_percent, p_stored.max_discount_minor)),
      ('min_order_amount', p_wanted.min_order_minor is distinct from p_stored.min_order_minor),
      ('skus', p_wanted.skus is distinct from p_stored.skus),
      ('after_reversal', p_wanted.after_reversal is distinct from p_stored.after_reversal))
      c (field, is_changed)
    where c.is_changed
      and exists (
        select
        from core.batch b
        where b.tenant_id = p_tenant.tenant_id and b.template_id = p_stored.template_id)) f);
