-- Retries the stuck party whose last attempt is oldest: up to p_limit of its events, in order, then
-- the closing of its day. Returns 1, or 0 if no party is due for a retry. Once all its events have
-- their places and its day can be closed, the party is no longer stuck.
--
-- This is a step of the sequencer with no other party's events, so a failure costs the others
-- nothing. A cured party catches up in such steps, and its newer events wait until it has.
create or replace function jobs.try_stuck_work(p_limit int) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_now     timestamptz := clock_timestamp();
  v_stuck   core.stuck_work;
  v_events  rules.event[];
begin
  if not rules.try_sequencer_lock() then
    return 0;
  end if;
  select s.* into v_stuck
  from core.stuck_work s
  where s.work = 'events' and s.tried_at <= v_now - interval '5 seconds'
    and not core.is_departed(s.tenant_id)
  order by s.tried_at
  limit 1;
  if not found then
    return 0;
  end if;
  v_events := array(
    select e
    from rules.event e
    where e.event_seq = any (array(
      select g.event_seq
      from core.event_gap g
      where g.tenant_id = v_stuck.tenant_id and g.party_id = v_stuck.party_id
      order by g.event_seq
      limit least(p_limit, 1000)))
    order by e.event_seq);
  if cardinality(v_events) > 0 then
    if rules.sequence_events(v_events, (select s.last_snapshot from core.sequencer s)) then
      -- so that the next call goes on with this party
      update core.stuck_work s
      set tried_at = 'epoch'
      where s.tenant_id = v_stuck.tenant_id and s.party_id = v_stuck.party_id and s.work = 'events';
    end if;
    return 1;
  elsif rules.has_unsequenced_event(v_now) then
    return 0;
  end if;
  if rules.close_due_day(v_stuck.tenant_id, v_stuck.party_id, v_now) is not null then
    delete from core.stuck_work s
    where s.tenant_id = v_stuck.tenant_id and s.party_id = v_stuck.party_id and s.work = 'events';
  end if;
  return 1;
end
$$;
