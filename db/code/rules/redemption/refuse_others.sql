-- Records the refusals of the locks and redeems of a group, and answers those that were neither
-- granted nor refused: the query did not find their merchant or coupon. Either there is none that
-- the caller may use, and the call is refused. Or another session, or an earlier call of the group,
-- has the coupon, and the call is handed back.
create or replace function rules.refuse_others(
  p_calls core.call[], p_ordinals int[], p_grants core.grant[], p_refused core.answer[])
returns core.answer[]
language plpgsql volatile as $$
declare
  v_ordinal  int;
  v_call     core.call;
  v_answer   core.answer;
  v_others   core.answer[] := p_refused;
begin
  foreach v_ordinal in array array(
    select o from unnest(p_ordinals) o
    except select (g.call).ordinal from unnest(p_grants) g
    except select r.ordinal from unnest(p_refused) r)
  loop
    v_call := p_calls[v_ordinal];
    v_answer := case
      when rules.find_merchant(v_call, v_call.args ->> 'merchant') is null
        then rules.refuse_not_found(v_call, 'merchant')
      when exists (
        select
        from core.coupon k
        where k.tenant_id = v_call.tenant_id and k.lookup_hash = (v_call.args ->> 'coupon')::uuid)
        then rules.hand_back()
      else rules.refuse_not_found(v_call, 'coupon')
    end;
    v_answer.ordinal := v_ordinal;
    v_others := v_others || v_answer;
  end loop;
  return rules.record_answers(p_calls, v_others);
end
$$;
