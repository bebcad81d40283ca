-- Closes up to p_limit business days that are over, the earliest day of each distributor first.
-- Returns how many. Holds the sequencer's lock, so only one transaction at a time posts entries or
-- closes days: no entry misses its day, and none is in two days.
--
-- Closes nothing while the sequencer still has to process a settled event, because that event may
-- belong to a day that is over. Newer events do not matter: no day that is over includes them.
-- Under load there are always some.
create or replace function jobs.close_days(p_limit int) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_now   timestamptz := clock_timestamp();
  v_high  bigint;
  v_day   record;
  v_done  int := 0;
begin
  if not rules.try_sequencer_lock() then
    return 0;
  end if;
  select s.high_seq into strict v_high from core.sequencer s;
  -- ordered and limited, so that the planner cannot scan sequenced events
  if exists (
    select
    from (
      select e.recorded_at
      from rules.event e
      where e.event_seq > v_high
      order by e.event_seq
      limit 1000) w
    where w.recorded_at < rules.compute_settled_time(v_now))
  or exists (
    select
    from rules.event e
    where e.event_seq = any (array(select g.event_seq from core.event_gap g))
      and e.recorded_at < rules.compute_settled_time(v_now))
  then
    return 0;
  end if;
  for v_day in
    select d.tenant_id, d.party_id, d.time_zone, d.business_date
    from (
      select b.tenant_id, b.party_id, p.time_zone,
             rules.find_due_date(b.open_on, v_now, p.time_zone) as business_date
      from core.ledger_book b
      join core.party p on p.tenant_id = b.tenant_id and p.party_id = b.party_id) d
    where d.business_date is not null
    order by d.business_date
    limit p_limit
  loop
    -- before its entries are counted: a session that posts to this book waits for us, or we for it
    update core.ledger_book b
    set open_on = rules.find_next_business_date(v_day.business_date, v_day.time_zone)
    where b.tenant_id = v_day.tenant_id and b.party_id = v_day.party_id;
    perform rules.close_day(v_day.tenant_id, v_day.party_id, v_day.business_date);
    v_done := v_done + 1;
  end loop;
  return v_done;
end
$$;
comment on function jobs.close_days(int) is 'Closes business days that are over; returns how many.';
