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
begin
  if cardinality(p_calls) = 1 then
    claimed := case
      when p_calls[1].caller_id is not null and p_calls[1].body_hash is not null
           and cardinality(p_reused) = 0 and rules.claim_request(p_calls[1])
        then '{1}'
      else '{}'
    end;
  else
    claimed := array(
      select w.ordinal
      from (
        select c.ordinal, c.tenant_id, c.caller_id, c.request_id, c.idempotency_key,
               row_number() over (
                 partition by c.caller_id, c.request_id collate "C"
                 order by c.ordinal) as nth_of_id,
               row_number() over (
                 partition by c.caller_id, c.idempotency_key collate "C"
                 order by c.ordinal) as nth_of_key
        from unnest(p_calls) c
        where c.caller_id is not null
          and c.body_hash is not null
          and c.ordinal <> all (p_reused)) w
      where w.nth_of_id = 1
        and (w.idempotency_key is null or w.nth_of_key = 1)
        and pg_try_advisory_xact_lock(
          rules.compute_name_lock(w.tenant_id, w.caller_id, w.request_id))
        and (w.idempotency_key is null or pg_try_advisory_xact_lock(
          rules.compute_name_lock(w.tenant_id, w.caller_id, w.idempotency_key))));
  end if;

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
