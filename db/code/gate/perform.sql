-- Performs a group of calls of one tenant in this transaction and gives each its final answer, in any order.
--
-- p_calls: [{credential_id, nonce, operation, request_id, idempotency_key, body_hash, args}]
-- p_alone: one call that may wait for others. Else nothing in here waits: a call that would have to is
--   handed back with http_status 0, nothing of it written but its nonce; it is to be run alone, with
--   nonce null.
-- Credentials, nonces, replays, redeems and locks, records: each is done for the whole group in few statements.
-- Effect and recorded answer are one transaction. An exception undoes the whole group.
create or replace function gate.perform(
  p_tenant_id int, p_calls jsonb, p_alone boolean,
  out ordinal int, out http_status int, out body text, out is_replay boolean)
returns setof record
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
declare
  v_calls     core.call[] := rules.identify_callers(p_tenant_id, p_calls, p_alone);
  v_reused    int[] := rules.spend_nonces(v_calls);
  v_call      core.call;
  v_answer    core.answer;
  v_reads     core.call[];
  v_writes    core.call[];
  v_claims    record;
  v_outcome   core.outcome;
  v_outcomes  core.outcome[];
begin
  -- who calls, and whether for the first time
  foreach v_call in array v_calls loop
    if v_call.caller_id is null then
      v_answer := rules.refuse(v_call, 'UNAUTHENTICATED');
    elsif v_call.ordinal = any (v_reused) then
      v_answer := rules.refuse(v_call, 'NONCE_REUSED');
    elsif v_call.operation = 'refuse' then
      v_answer := (0, null);
    elsif v_call.body_hash is null then  -- a read
      v_reads := v_reads || v_call;
      continue;
    else
      v_writes := v_writes || v_call;
      continue;
    end if;
    v_outcomes := v_outcomes || (v_call.ordinal, v_answer, false)::core.outcome;
  end loop;

  -- what is a retry is answered as before, the rest is new and ours
  if v_writes is not null then
    v_claims := rules.claim_requests(v_writes);
    v_outcomes := v_outcomes || v_claims.outcomes;
    if cardinality(v_claims.claimed) > 0 then
      v_outcomes := v_outcomes || rules.record_answers(v_calls, rules.run_operations(v_claims.claimed));
    end if;
  end if;
  if v_reads is not null then
    v_outcomes := v_outcomes || rules.run_operations(v_reads);
  end if;

  foreach v_outcome in array v_outcomes loop
    ordinal := v_outcome.ordinal;
    http_status := (v_outcome.answer).http_status;
    body := (v_outcome.answer).body;
    is_replay := v_outcome.is_replay;
    return next;
  end loop;
end
$$;
comment on function gate.perform(int, jsonb, boolean) is 'Performs a group of calls of one tenant.';
