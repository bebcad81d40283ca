-- Writes an audit row for each object that a provisioning of the tenant changed. Returns these
-- changes, and what was removed. p_before: the targets before it, as rules.describe_provisioned
-- describes them.
create or replace function rules.write_changes(
  p_tenant core.tenant, p_targets text[], p_before jsonb, p_reason text,
  out changes jsonb, out removals jsonb)
language plpgsql volatile as $$
declare
  v_after  jsonb := rules.describe_provisioned(p_tenant, p_targets);
begin
  changes := rules.describe_changes(p_tenant.external_id, p_before, v_after);
  removals := rules.find_removals(p_tenant, p_before, v_after);
  perform rules.write_audit(
    p_tenant.tenant_id, 'apply', c.value ->> 'target', p_reason, c.value -> 'fields')
  from jsonb_array_elements(changes) with ordinality c
  order by c.ordinality;
end
$$;
