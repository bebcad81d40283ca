-- Records an administrative action in the audit table: who, what, on what and why. p_details says
-- what changed, old and new; of a secret only 'replaced'. Refuses the action if another cell serves
-- the tenant: it would change a copy.
create or replace function rules.write_audit(
  p_tenant_id int, p_action text, p_target text, p_reason text, p_details jsonb)
returns void
language plpgsql volatile as $$
declare
  v_tenant  core.tenant;
begin
  select t.* into v_tenant from core.tenant t where t.tenant_id = p_tenant_id;
  if v_tenant.home is distinct from core.read_cell() and p_tenant_id is not null then
    raise exception '% lives in cell %, and this is cell %',
      v_tenant.external_id, v_tenant.home, core.read_server_cell() using errcode = 'CP409';
  elsif v_tenant.fence is not null then
    raise exception '% is moving to another cell', v_tenant.external_id using errcode = 'CP409';
  end if;
  insert into core.audit (tenant_id, action, target, reason, details)
  values (p_tenant_id, p_action, p_target, p_reason, p_details);
end
$$;
