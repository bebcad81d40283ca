-- Lock and confirm in one step, for the redeems of a group.
create or replace function api.redeem(p_calls core.call[]) returns core.outcome[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_decision  core.decision;
  v_answer    core.answer;
  v_outcomes  core.outcome[];
begin
  -- lock rows, decide; write; answer
  foreach v_decision in array rules.write_redemptions(rules.decide_redemptions(p_calls), 'REDEEMED') loop
    v_answer := v_decision.refusal;
    if (v_decision.terms).redemption_id is not null then
      v_answer := rules.succeed(format('{"ok":true,"redemption":"%s","discount_amount":%s}',
        rules.format_id('red', (v_decision.terms).redemption_id),
        rules.format_amount((v_decision.terms).discount_minor, (v_decision.terms).decimals, (v_decision.call).amount_unit)));
    end if;
    v_outcomes := v_outcomes || ((v_decision.call).ordinal, v_answer, false)::core.outcome;
  end loop;
  return v_outcomes;
end
$$;
comment on function api.redeem(core.call[]) is 'POST /v1/coupons/redeem';
