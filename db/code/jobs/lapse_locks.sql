-- Marks up to p_limit expired locks as LAPSED and returns how many. (Answers treat a lock as gone
-- once it has expired.) Their coupons become ISSUED again, or EXPIRED with an event. Skips locks
-- whose coupon or redemption another session holds.
--
-- If the rows of one lock make the step fail, each lock is tried alone, and the failing one rests
-- for a minute.
create or replace function jobs.lapse_locks(p_limit int) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_coupon  core.coupon;
  v_batch   core.batch;
  v_reason  text;
  v_done    int := 0;
begin
  begin
    return rules.lapse_next_locks(p_limit);
  exception when data_exception or integrity_constraint_violation then
    null;
  end;
  for v_coupon in select * from rules.hold_expired_locks(p_limit) loop
    begin
      perform rules.free_expired_coupon(v_coupon);
      set constraints all immediate;
      set constraints all deferred;
      v_done := v_done + 1;
    exception when data_exception or integrity_constraint_violation then
      get stacked diagnostics v_reason = message_text;
      v_batch := rules.find_batch_of_coupon(v_coupon.tenant_id, v_coupon.coupon_id);
      perform rules.note_stuck_work(
        'locks', v_coupon.tenant_id, v_batch.distributor_id,
        rules.format_id('cpn', v_coupon.coupon_id), v_reason);
    end;
  end loop;
  return v_done;
end
$$;
