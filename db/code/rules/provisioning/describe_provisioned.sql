-- What a tenant has under these external IDs and access keys, as {target: {field: value}}, with the
-- fields of a provisioning file. A secret is shown as its hash: only rules.describe_changes and
-- rules.find_removals may read it.
create or replace function rules.describe_provisioned(p_tenant core.tenant, p_targets text[])
returns jsonb
language sql stable
begin atomic
  with found (target, fields) as (
    select t.external_id, jsonb_build_object(
             'name', t.name, 'variant', t.variant, 'amount_unit', t.amount_unit,
             'sandbox', nullif(t.is_sandbox, false))
    from core.tenant t
    where t.tenant_id = p_tenant.tenant_id
    union all
    select p.external_id, jsonb_build_object(
             'name', p.name, 'time_zone', p.time_zone, 'public_key', p.public_key,
             'webhook_url', w.url, 'webhook_secret', encode(w.secret_hash, 'hex'),
             'webhook_disabled_at', rules.format_time(w.disabled_at),
             'webhook_expand', nullif(w.expand, false),
             'webhook_event_types', w.event_types)
    from core.party p
    left join core.webhook w on w.tenant_id = p.tenant_id and w.party_id = p.party_id
    where p.tenant_id = p_tenant.tenant_id and p.external_id = any (p_targets)
    union all
    select m.external_id, coalesce(s.stores, '{}') || jsonb_build_object(
             'name', m.name, 'party', p.external_id, 'delegates', (
               select jsonb_agg(o.external_id order by o.external_id collate "C")
               from core.merchant_delegate d
               join core.party o on o.tenant_id = d.tenant_id and o.party_id = d.party_id
               where d.tenant_id = m.tenant_id and d.merchant_id = m.merchant_id))
    from core.merchant m
    join core.party p on p.tenant_id = m.tenant_id and p.party_id = m.party_id
    cross join lateral (
      select jsonb_object_agg('store ' || x.external_id, (
               select coalesce(jsonb_agg(z.external_id order by z.external_id collate "C"), '[]')
               from core.terminal z
               where z.tenant_id = x.tenant_id and z.store_id = x.store_id)) as stores
      from core.store x
      where x.tenant_id = m.tenant_id and x.merchant_id = m.merchant_id) s
    where m.tenant_id = p_tenant.tenant_id and m.external_id = any (p_targets)
    union all
    select t.external_id, jsonb_build_object(
             'name', t.name, 'maker', k.external_id, 'distributor', d.external_id,
             'currency', t.currency, 'discount_type', t.discount_type,
             'discount_amount',
             trim_scale(rules.format_amount(t.discount_minor, c.decimals, p_tenant.amount_unit)),
             'discount_percent', trim_scale(t.discount_percent), 'max_discount_amount', trim_scale(
               rules.format_amount(t.max_discount_minor, c.decimals, p_tenant.amount_unit)),
             'min_order_amount',
             trim_scale(rules.format_amount(t.min_order_minor, c.decimals, p_tenant.amount_unit)),
             'skus', t.skus, 'valid_from', rules.format_time(t.valid_from),
             'valid_to', rules.format_time(t.valid_to), 'lock_ttl_seconds', t.lock_ttl_seconds,
             'after_reversal', t.after_reversal, 'merchants', case
               when t.is_for_all_merchants then '"all"'
               else (
                 select jsonb_agg(m.external_id order by m.external_id collate "C")
                 from core.template_merchant s
                 join core.merchant m
                   on m.tenant_id = s.tenant_id and m.merchant_id = s.merchant_id
                 where s.tenant_id = t.tenant_id and s.template_id = t.template_id)
             end)
    from core.template t
    join core.currency c on c.currency = t.currency
    join core.party k on k.tenant_id = t.tenant_id and k.party_id = t.maker_id
    left join core.party d on d.tenant_id = t.tenant_id and d.party_id = t.distributor_id
    where t.tenant_id = p_tenant.tenant_id and t.external_id = any (p_targets)
    union all
    select c.access_key, jsonb_build_object(
             'party', p.external_id, 'secret', encode(c.secret_hash, 'hex'))
    from core.credential c
    left join core.party p on p.tenant_id = c.tenant_id and p.party_id = c.party_id
    where c.tenant_id = p_tenant.tenant_id and c.access_key = any (p_targets))
  select coalesce(jsonb_object_agg(f.target, jsonb_strip_nulls(f.fields)), '{}') from found f;
end;
