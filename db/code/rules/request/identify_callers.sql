-- Turns the calls of a group into core.call and looks up their callers. Reads the credential of
-- each call, so a revoked one stops working at once, even if the HTTP layer still caches it.
-- caller_id is null if the credential is unknown or revoked. ordinal is the position of the call in
-- the array.
--
-- Another cell may serve the tenant, or it is on its way to one: then all calls are refused for
-- now, with an error that means "try again later".
create or replace function rules.identify_callers(
  p_tenant_id int, p_calls jsonb, p_random bytea, p_may_wait boolean)
returns core.call[]
language plpgsql stable as $$
declare
  v_calls  core.call[];
begin
  v_calls := array(
    select (r.ordinal, p_tenant_id, t.variant, t.amount_unit,
            case when c.credential_id is not null then coalesce(c.party_id, 0) end,
            r.credential_id, r.nonce, r.operation, r.request_id, r.idempotency_key,
            decode(r.body_hash, 'hex'), p_may_wait, r.args,
            substring(p_random from r.ordinal::int * 10 - 9 for 10))::core.call
    from core.tenant t
    join core.cell h on h.number = t.home
    cross join rows from (
      jsonb_to_recordset(p_calls) as (
        credential_id int, nonce text, operation text, request_id text, idempotency_key text,
        body_hash text, args jsonb)) with ordinality
      as r (credential_id, nonce, operation, request_id, idempotency_key, body_hash, args, ordinal)
    left join core.credential c
      on c.tenant_id = p_tenant_id and c.credential_id = r.credential_id and c.revoked_at is null
    where t.tenant_id = p_tenant_id and h.is_this and h.number = core.read_server_cell()
      and t.fence is null
    -- equivalent mutant (order): nested loops keep the order
    order by r.ordinal);
  if v_calls = '{}' then
    raise exception 'tenant % is not served by cell % now', p_tenant_id, core.read_server_cell()
      using errcode = 'cannot_connect_now';
  end if;
  return v_calls;
end
$$;
