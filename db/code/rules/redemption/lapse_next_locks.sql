-- Marks up to p_limit expired locks as LAPSED and returns how many. Fails if one coupon cannot be
-- freed. The checks of changed redemptions run here and not at commit, where a violation would undo
-- the whole step each time.
create or replace function rules.lapse_next_locks(p_limit int) returns int
language plpgsql volatile as $$
declare
  v_coupon  core.coupon;
  v_done    int := 0;
begin
  for v_coupon in select * from rules.hold_expired_locks(p_limit) loop
    if rules.free_expired_coupon(v_coupon) then
      v_done := v_done + 1;
    end if;
  end loop;
  set constraints all immediate;
  set constraints all deferred;
  return v_done;
end
$$;
