-- Performs a group of calls of one tenant in this transaction and returns one row for each call, in
-- any order. All effects and recorded answers commit together. An exception undoes the whole group.
--
-- p_calls: [{credential_id, nonce, operation, request_id, idempotency_key, body_hash, args}]
--   nonce null: it has been spent before. body_hash null: the call is a read.
-- p_may_wait: calls may wait for locks; p_calls then has one call. If false, nothing here waits: a
--   call that would have to wait is handed back (http_status null), and only its nonce is written.
--   The gate then runs it again, alone, with nonce null.
--
-- The operation spend_nonce has no further effect: nonces are spent before any operation runs.
-- A few statements for the whole group check credentials and nonces, find replays, redeem, lock
-- and record.
create or replace function gate.perform(
  p_tenant_id int, p_calls jsonb, p_may_wait boolean,
  out ordinal int, out http_status int, out code text, out resource text, out body text,
  out is_replay boolean)
returns setof record
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_calls     core.call[] := rules.identify_callers(p_tenant_id, p_calls, p_may_wait);
  v_reused    int[] := rules.spend_nonces(v_calls);
  v_call      core.call;
  v_answer    core.answer;
  v_reads     core.call[];
  v_writes    core.call[];
  v_claims    record;
  v_outcome   core.outcome;
  v_outcomes  core.outcome[];
begin
  -- refuse unknown callers and reused nonces
  foreach v_call in array v_calls loop
    if v_call.caller_id is null then
      v_answer := rules.refuse(v_call, 'UNAUTHENTICATED');
    elsif v_call.ordinal = any (v_reused) then
      v_answer := rules.refuse(v_call, 'NONCE_REUSED');
    elsif v_call.operation = 'spend_nonce' then
      v_answer := rules.succeed('{"ok":true}');
    elsif v_call.body_hash is null then
      v_reads := v_reads || v_call;
      continue;
    else
      v_writes := v_writes || v_call;
      continue;
    end if;
    v_outcomes := v_outcomes || (v_call.ordinal, v_answer, false)::core.outcome;
  end loop;

  -- retries get the first answer; new requests run and are recorded
  if v_writes is not null then
    v_claims := rules.claim_requests(v_writes);
    v_outcomes := v_outcomes || v_claims.outcomes;
    if cardinality(v_claims.claimed) > 0 then
      v_outcomes := v_outcomes
        || rules.record_answers(v_calls, rules.run_operations(v_claims.claimed));
    end if;
  end if;
  if v_reads is not null then
    v_outcomes := v_outcomes || rules.run_operations(v_reads);
  end if;

  foreach v_outcome in array v_outcomes loop
    ordinal := v_outcome.ordinal;
    http_status := (v_outcome.answer).http_status;
    code := (v_outcome.answer).code;
    resource := (v_outcome.answer).resource;
    body := (v_outcome.answer).body;
    is_replay := v_outcome.is_replay;
    return next;
  end loop;
end
$$;
comment on function gate.perform(int, jsonb, boolean) is 'Performs a group of calls of one tenant.';
