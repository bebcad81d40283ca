-- Runs the operation of each of these calls, and records the answers to writes: first those that
-- run one by one, then all confirms, all redeems and all locks together. So a cancel comes before a
-- confirm of the same lock, whichever was sent first.
create or replace function rules.run_operations(p_calls core.call[], p_ordinals int[])
returns core.answer[]
language plpgsql volatile as $$
declare
  v_ordinal   int;
  v_call      core.call;
  v_answer    core.answer;
  v_redeems   int[];
  v_locks     int[];
  v_confirms  int[];
  v_answers   core.answer[];
begin
  foreach v_ordinal in array p_ordinals loop
    case p_calls[v_ordinal].operation
      when 'redeem' then
        v_redeems := v_redeems || v_ordinal;
        continue;
      when 'lock' then
        v_locks := v_locks || v_ordinal;
        continue;
      when 'confirm' then
        v_confirms := v_confirms || v_ordinal;
        continue;
      else v_call := p_calls[v_ordinal];
    end case;
    case v_call.operation
      when 'cancel' then v_answer := api.cancel(v_call);
      when 'query' then v_answer := api.query(v_call);
      when 'reverse' then v_answer := api.reverse(v_call);
      when 'void' then v_answer := api.void(v_call);
      when 'create_batch' then v_answer := api.create_batch(v_call);
      when 'get_batch' then v_answer := api.get_batch(v_call);
      when 'list_batches' then v_answer := api.list_batches(v_call);
      when 'get_redemption' then v_answer := api.get_redemption(v_call);
      when 'list_redemptions' then v_answer := api.list_redemptions(v_call);
      when 'allocate_batch' then v_answer := api.allocate_batch(v_call);
      when 'suspend_batch' then v_answer := api.suspend_batch(v_call);
      when 'resume_batch' then v_answer := api.resume_batch(v_call);
      when 'recall_batch' then v_answer := api.recall_batch(v_call);
      when 'export_codes' then v_answer := api.export_codes(v_call);
      when 'get_request' then v_answer := api.get_request(v_call);
      when 'pull_events' then v_answer := api.pull_events(v_call);
      when 'list_reconciliations' then v_answer := api.list_reconciliations(v_call);
      when 'get_reconciliation' then v_answer := api.get_reconciliation(v_call);
      when 'get_webhook' then v_answer := api.get_webhook(v_call);
      when 'close_day' then v_answer := api.close_day(v_call);
      when 'replay_events' then v_answer := api.replay_events(v_call);
      when 'test_webhook' then v_answer := api.test_webhook(v_call);
      when 'open_portal' then v_answer := api.open_portal(v_call);
    end case;
    v_answer.ordinal := v_ordinal;
    v_answers := v_answers || v_answer;
  end loop;
  -- these calls are all writes or all reads
  if v_call.body_hash is not null then
    v_answers := rules.record_answers(p_calls, v_answers);
  end if;
  if v_confirms is not null then
    v_answers := v_answers
      || rules.record_answers(p_calls, api.confirm(p_calls, v_confirms));
  end if;
  if v_redeems is not null then
    v_answers := v_answers || api.redeem(p_calls, v_redeems);
  end if;
  if v_locks is not null then
    v_answers := v_answers || api.lock(p_calls, v_locks);
  end if;
  return v_answers;
end
$$;
