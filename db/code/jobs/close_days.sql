-- Closes up to p_limit business days that are over, the earliest day of each distributor first.
-- Returns how many. Holds the sequencer's lock, so only one transaction at a time posts entries or
-- closes days: no entry misses its day, and none is in two days.
--
-- Closes nothing while the sequencer still has to process a settled event, because that event may
-- belong to a day that is over. Leaves out distributors that are stuck: jobs.try_stuck_work tries
-- them. A distributor whose time zone the server does not know counts as due, so that this step
-- finds it. Without bitmap scans, waiting events are read in order, up to the limit, not sorted.
create or replace function jobs.close_days(p_limit int) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set enable_bitmapscan = off as $$
declare
  v_now   timestamptz := clock_timestamp();
  v_day   record;
  v_done  int := 0;
begin
  if not rules.try_sequencer_lock() or rules.has_unsequenced_event(v_now) then
    return 0;
  end if;
  for v_day in
    select d.tenant_id, d.party_id
    from rules.list_due_days(v_now) d
    where not exists (
      select
      from core.stuck_work s
      where s.tenant_id = d.tenant_id and s.party_id = d.party_id and s.work = 'events')
    order by d.business_date
    limit p_limit
  loop
    if rules.close_due_day(v_day.tenant_id, v_day.party_id, v_now) then
      v_done := v_done + 1;
    end if;
  end loop;
  return v_done;
end
$$;
