-- Performs a group of calls of one tenant in this transaction, in order, and gives each its final answer.
--
-- p_calls: [{credential_id, nonce, operation, request_id, idempotency_key, body_hash, args}]
-- p_alone: one call that may wait for others. Else nothing in here waits: a call that would have to is
--   handed back with http_status 0, nothing of it written but its nonce; it is to be run alone, with
--   nonce null.
-- Effect and recorded answer are one transaction. An exception undoes the whole group.
create or replace function gate.perform(
  p_tenant_id int, p_calls jsonb, p_alone boolean,
  out ordinal int, out http_status int, out body text, out is_replay boolean)
returns setof record
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  v_request  record;
  v_outcome  record;
begin
  for v_request in
    select c.value as call, c.ordinality
    from jsonb_array_elements(p_calls) with ordinality c
    order by c.ordinality
  loop
    v_outcome := rules.perform_one(p_tenant_id, v_request.call, p_alone);
    ordinal := v_request.ordinality;
    http_status := (v_outcome.answer).http_status;
    body := (v_outcome.answer).body;
    is_replay := v_outcome.is_replay;
    return next;
  end loop;
end
$$;
comment on function gate.perform(int, jsonb, boolean) is 'Performs a group of calls of one tenant.';
