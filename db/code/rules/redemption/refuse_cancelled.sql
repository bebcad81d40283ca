-- The refusals of these grants whose cancel was answered before them.
create or replace function rules.refuse_cancelled(p_grants core.grant[]) returns core.answer[]
language plpgsql stable as $$
declare
  v_grant    core.grant;
  v_answers  core.answer[] := '{}';
begin
  foreach v_grant in array p_grants loop
    if rules.is_lock_cancelled(v_grant.call, v_grant.coupon_id) then
      v_answers := v_answers || rules.refuse(v_grant.call, 'LOCK_CANCELLED');
    end if;
  end loop;
  return v_answers;
end
$$;
