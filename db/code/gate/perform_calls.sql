-- Performs a group of calls of one tenant in this transaction, and returns the answer of each, in
-- any order. All effects and recorded answers commit together. An exception undoes the whole group.
--
-- p_calls: [{credential_id, nonce, operation, request_id, idempotency_key, body_hash, args}]
--   nonce is null if it was already spent. body_hash is null if the call is a read. args has
--   is_counted if a 404 about a coupon may be recorded.
-- p_random: 10 bytes for each call, which end the ID of its redemption, a UUIDv7: the version and
--   what follows.
-- p_may_wait: calls may wait for locks; p_calls then has one call. If false, nothing here waits: a
--   call that would have to wait is handed back (http_status null), and only its nonce is written.
--   The gate then runs it again, alone, with nonce null.
--
-- The operation spend_nonce has no further effect: nonces are spent before any operation runs.
-- A few statements for the whole group check credentials and nonces, find replays, redeem, lock,
-- confirm and record. A lock or redeem that is granted has the columns of its redemption, and no
-- body.
create or replace function gate.perform_calls(
  p_tenant_id int, p_calls jsonb, p_random bytea, p_may_wait boolean)
returns core.answer[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_calls    core.call[] := rules.identify_callers(p_tenant_id, p_calls, p_random, p_may_wait);
  v_reused   int[] := rules.spend_nonces(v_calls);
  v_claims   record := rules.claim_group(v_calls, v_reused);
  v_answers  core.answer[] := v_claims.answers;
begin
  -- equivalent mutant (boundary): without a claim, the call does nothing
  if cardinality(v_claims.claimed) > 0 then
    v_answers := v_answers || rules.run_operations(v_calls, v_claims.claimed);
  end if;
  if cardinality(v_claims.claimed) < cardinality(v_calls) then
    v_answers := v_answers
      || rules.run_others(v_calls, v_reused, array(select a.ordinal from unnest(v_answers) a));
    perform rules.require_replication(p_may_wait);
  end if;
  return v_answers;
end
$$;
