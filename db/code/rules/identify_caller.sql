-- The caller behind a credential, asked at each call: a revoked credential ends here, whatever a cache
-- still holds. caller_id stays null when there is none.
create or replace function rules.identify_caller(p_tenant_id int, p_request jsonb, p_may_wait boolean)
returns core.call
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  v_call  core.call;
begin
  select t.variant, t.amount_unit, coalesce(c.party_id, 0)
    into v_call.variant, v_call.amount_unit, v_call.caller_id
  from core.credential c
  join core.tenant t on t.tenant_id = c.tenant_id
  where c.tenant_id = p_tenant_id
    and c.credential_id = (p_request ->> 'credential_id')::int
    and c.revoked_at is null;
  v_call.tenant_id := p_tenant_id;
  v_call.request_id := p_request ->> 'request_id';
  v_call.idempotency_key := p_request ->> 'idempotency_key';
  v_call.body_hash := decode(p_request ->> 'body_hash', 'hex');
  v_call.may_wait := p_may_wait;
  v_call.args := p_request -> 'args';
  return v_call;
end
$$;
comment on function rules.identify_caller(int, jsonb, boolean) is 'Who calls, by credential.';
