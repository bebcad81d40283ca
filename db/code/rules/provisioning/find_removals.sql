-- What a provisioning took away from objects of the tenant, by name: stores, terminals, delegates,
-- and merchants at which a template was valid. p_before, p_after: what rules.describe_provisioned
-- returned.
create or replace function rules.find_removals(
  p_tenant core.tenant, p_before jsonb, p_after jsonb)
returns jsonb
language sql stable
begin atomic
  with field as (
    select o.key as target, f.key as name, f.value as old,
           coalesce(p_after #> array[o.key, f.key], '[]') as new
    from jsonb_each(p_before) o
    cross join jsonb_each(o.value) f
    where f.value is distinct from p_after #> array[o.key, f.key]),
  removed (kind, template, merchant, store, name) as (
    select 'store', null, f.target, null, substr(f.name, length('store ') + 1)
    from field f
    where starts_with(f.name, 'store ') and p_after #> array[f.target, f.name] is null
    union all
    select 'terminal', null, f.target, substr(f.name, length('store ') + 1), x #>> '{}'
    from field f
    cross join jsonb_path_query(f.old, '$[*]') x
    where starts_with(f.name, 'store ') and not f.new ? (x #>> '{}')
    union all
    select 'delegate', null, f.target, null, x #>> '{}'
    from field f
    cross join jsonb_path_query(f.old, '$[*]') x
    where f.name = 'delegates' and not f.new ? (x #>> '{}')
    union all
    -- A template that was for all merchants loses those that it does not name. New ones were not
    -- among them.
    select 'merchant', f.target, null, null, m.external_id
    from field f
    join core.merchant m on m.tenant_id = p_tenant.tenant_id
    where f.name = 'merchants'
      and f.new <> '"all"'
      and not f.new ? m.external_id
      and (f.old ? m.external_id
           or f.old = '"all"' and (p_before ? m.external_id or not p_after ? m.external_id)))
  select coalesce(jsonb_agg(
           jsonb_strip_nulls(jsonb_build_object(
             'kind', r.kind, 'tenant', p_tenant.external_id, 'template', r.template,
             'merchant', r.merchant, 'store', r.store, 'name', r.name))
           order by r.kind, concat_ws(' ', r.template, r.merchant, r.store, r.name) collate "C"),
         '[]')
  from removed r;
end;
