-- Answers the calls of a group that are neither new requests nor retries. Refuses unknown callers
-- and reused nonces, performs the reads, and hands back the writes that could not be claimed. A
-- write that may wait has already waited, so it is refused.
create or replace function rules.run_others(
  p_calls core.call[], p_reused int[], p_answered int[])
returns core.answer[]
language plpgsql volatile as $$
declare
  v_call      core.call;
  v_answer    core.answer;
  v_reads     int[];
  v_answers  core.answer[];
begin
  foreach v_call in array p_calls loop
    if v_call.ordinal = any (p_answered) then
      continue;
    elsif v_call.caller_id is null then
      v_answer := rules.refuse(v_call, 'UNAUTHENTICATED');
    elsif v_call.ordinal = any (p_reused) then
      v_answer := rules.refuse(v_call, 'NONCE_REUSED');
    elsif v_call.operation = 'spend_nonce' then
      -- equivalent mutant (literal): nothing reads this body
      v_answer := rules.succeed('{"ok":true}');
    elsif v_call.body_hash is null then
      -- Without a hash there is no record, so a write would leave no trace.
      if v_call.operation not in (
        'query', 'get_batch', 'list_batches', 'export_codes', 'get_redemption', 'list_redemptions',
        'get_request', 'pull_events', 'list_reconciliations', 'get_reconciliation', 'get_webhook')
      then
        raise exception '% is a write: it needs a body_hash', v_call.operation;
      end if;
      v_reads := v_reads || v_call.ordinal;
      continue;
    elsif v_call.may_wait then
      v_answer := rules.refuse(v_call, 'REQUEST_IN_PROGRESS');
    else
      v_answer := rules.hand_back();
    end if;
    v_answer.ordinal := v_call.ordinal;
    v_answers := v_answers || v_answer;
  end loop;
  if v_reads is not null then
    v_answers := v_answers || rules.run_operations(p_calls, v_reads);
  end if;
  return v_answers;
end
$$;
