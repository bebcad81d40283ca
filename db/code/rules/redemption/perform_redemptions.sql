-- Performs the locks (p_status LOCKED) or the redeems (REDEEMED) of a group. They differ only in
-- their writes and in one field of the answer.
create or replace function rules.perform_redemptions(p_calls core.call[], p_status text)
returns core.outcome[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_decisions  core.decision[];
  v_decision   core.decision;
  v_terms      core.grant_terms;
  v_answer     core.answer;
  v_outcomes   core.outcome[];
begin
  -- lock rows and decide
  v_decisions := rules.decide_redemptions(p_calls);

  -- write
  perform rules.write_redemptions(v_decisions, p_status);

  -- answer
  foreach v_decision in array v_decisions loop
    v_answer := v_decision.refusal;
    v_terms := v_decision.terms;
    if v_terms.redemption_id is not null then
      v_answer := rules.succeed(format('{"ok":true,"redemption":"%s","discount_amount":%s%s}',
        rules.format_id('red', v_terms.redemption_id),
        rules.format_amount(
          v_terms.discount_minor, v_terms.decimals, (v_decision.call).amount_unit),
        case when p_status = 'LOCKED' then
          format(',"lock_expires_at":"%s"', rules.format_time(v_terms.lock_expires_at))
        end));
    end if;
    v_outcomes := v_outcomes || ((v_decision.call).ordinal, v_answer, false)::core.outcome;
  end loop;
  return v_outcomes;
end
$$;
comment on function rules.perform_redemptions(core.call[], text) is
  'Performs the locks or the redeems of a group.';
