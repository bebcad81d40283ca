-- Locks a sandbox for an administrator, by its external ID, and returns its key.
create or replace function rules.hold_sandbox(p_tenant text) returns int
language plpgsql volatile as $$
declare
  v_tenant  core.tenant;
begin
  select t.* into v_tenant from core.tenant t where t.external_id = p_tenant for no key update;
  if not found then
    raise exception 'no tenant %', p_tenant using errcode = 'CP404';
  elsif not v_tenant.is_sandbox then
    raise exception '% is no sandbox', p_tenant using errcode = 'CP409';
  end if;
  return v_tenant.tenant_id;
end
$$;
