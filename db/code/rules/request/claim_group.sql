-- Claims the new requests among the writes of a group. A name is a request_id or an
-- idempotency-key.
-- claimed: the ordinals of new requests. No other transaction can perform them until this one ends.
-- answers: the answers to retries. An equal retry gets the first answer. A call whose name belongs
--   to a different request is refused.
-- A write in neither list could not be claimed, because another transaction or an earlier call of
-- this group uses its name. rules.run_others hands it back, or refuses it if it has waited.
create or replace function rules.claim_group(
  p_calls core.call[], p_reused int[], out claimed int[], out answers core.answer[])
language plpgsql volatile as $$
declare
  v_call   core.call;
  v_id     bigint;
  v_key    bigint;
  v_taken  bigint[] := '{}';
begin
  claimed := '{}';
  foreach v_call in array p_calls loop
    continue when v_call.caller_id is null or v_call.body_hash is null
      or v_call.ordinal = any (p_reused);
    v_id := rules.compute_name_lock(v_call.tenant_id, v_call.caller_id, v_call.request_id);
    v_key := coalesce(
      rules.compute_name_lock(v_call.tenant_id, v_call.caller_id, v_call.idempotency_key), v_id);
    continue when v_id = any (v_taken) or v_key = any (v_taken)
      or not rules.claim_names(v_id, v_key, v_call.may_wait);
    v_taken := v_taken || array[v_id, v_key];
    claimed := claimed || v_call.ordinal;
  end loop;

  -- their names are locked, so no other session can record them now
  answers := rules.find_retries(p_calls, claimed);
  if answers is not null then
    claimed := array(
      select c.ordinal
      from unnest(claimed) c (ordinal)
      where c.ordinal <> all (array(select a.ordinal from unnest(answers) a)));
    perform rules.record_retries(p_calls, answers);
  end if;
end
$$;
