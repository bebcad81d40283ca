-- Problems of a tenant of a provisioning document: fields that are fixed, and differ from what is
-- stored.
create or replace function rules.find_fixed_problems(
  p_stored core.tenant, p_tenant jsonb, p_path text)
returns jsonb
language sql stable
return (
  select coalesce(jsonb_agg(jsonb_build_object(
           'path', p_path || '.' || f.field, 'message', 'cannot change: ' || f.stored)), '[]')
  from (values
    ('variant', 'the tenant exists in variant ' || p_stored.variant,
     p_stored.variant <> p_tenant ->> 'variant'),
    ('amount_unit', 'the tenant exists with ' || p_stored.amount_unit,
     p_stored.amount_unit <> p_tenant ->> 'amount_unit'),
    ('sandbox', case
       when p_stored.is_sandbox then 'the tenant is a sandbox'
       else 'the tenant is no sandbox'
     end, p_stored.is_sandbox <> (p_tenant ->> 'sandbox')::boolean))
    f (field, stored, is_changed)
  where f.is_changed);
