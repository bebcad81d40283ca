-- Who makes a call and with which request, for the audit table.
create or replace function rules.describe_caller(p_call core.call) returns jsonb
language sql stable
return (
  select jsonb_build_object('access_key', c.access_key, 'request_id', p_call.request_id)
  from core.credential c
  where c.tenant_id = p_call.tenant_id and c.credential_id = p_call.credential_id);
