-- gate.perform_calls of the cell in which the tenant lives. If that cell cannot be reached or does
-- not serve the tenant, the others are asked: the tenant may have moved. Only a group that the cell
-- has refused is sent again. One whose outcome is unknown may have spent its nonces.
create or replace function gate.perform_calls(
  p_tenant_id int, p_calls jsonb, p_random bytea, p_may_wait boolean)
returns core.answer[]
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_state    text;
  v_message  text;
begin
  return remote.perform_calls(p_tenant_id, p_calls, p_random, p_may_wait);
exception when internal_error or cannot_connect_now or admin_shutdown then
  get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
  if not router.find_home(p_tenant_id) or v_state <> '57P03' then
    perform router.raise_failure(v_state, v_message);
  end if;
  return remote.perform_calls(p_tenant_id, p_calls, p_random, p_may_wait);
end
$$;
