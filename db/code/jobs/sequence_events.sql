-- One step of the sequencer. Takes up to p_limit committed events (at most 1,000), appends them to
-- their feeds, posts their ledger entries to a business day, and creates their deliveries.
-- sequenced also counts events that now wait because their party is stuck (rules.sequence_events).
-- is_drained is true if no visible event is left. Only one sequencer runs at a time; a second one
-- returns at once. A step is one transaction, so a step that is killed has no effect.
--
-- An event can commit later than one with a higher number. So a missing number below the highest
-- one is kept as a gap until every transaction that may have drawn it has ended. Each step searches
-- only the gaps that may have been filled by a transaction that ended since the last step. Nothing
-- waits for a gap: the events of a coupon are written under its row lock, so they become visible in
-- order. A step that cannot take all late events takes the lowest, and the next one searches all
-- gaps.
create or replace function jobs.sequence_events(
  p_limit int, out sequenced int, out is_drained boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_limit          int := least(p_limit, 1000);
  v_high           bigint;
  v_last_snapshot  pg_snapshot;
  v_found          record;
  v_events         rules.event[];
begin
  if pg_current_xact_id_if_assigned() is not null then
    raise exception 'a step of the sequencer needs its own transaction'
      using errcode = 'active_sql_transaction',
            hint = 'rules.take_events needs a transaction ID newer than the snapshot.';
  end if;
  sequenced := 0;
  is_drained := false;
  if not rules.try_sequencer_lock() then
    return;
  end if;
  select s.high_seq, s.last_snapshot into strict v_high, v_last_snapshot from core.sequencer s;

  -- One statement, so that events, gaps and transaction IDs are of one snapshot. A last_snapshot
  -- newer than this one comes from another server, before a restore, and is ignored.
  with ended as (
    select least(
             pg_snapshot_xmax(v_last_snapshot),
             (select min(x.id)
              from pg_snapshot_xip(v_last_snapshot) x (id)
              where pg_visible_in_snapshot(x.id, pg_current_snapshot()))) as first_id
    where pg_snapshot_xmax(v_last_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())),
  -- array(…), so that the planner cannot scan all events
  late as (
    select e as event
    from rules.event e
    where e.event_seq = any (array(
      select g.event_seq
      from core.event_gap g
      where g.drawn_before > coalesce((select n.first_id from ended n), '0')))
    order by e.event_seq
    limit v_limit),
  fresh as (
    select e as event
    from rules.event e
    where e.event_seq > v_high
    order by e.event_seq
    limit v_limit - (select count(*) from late))
  -- late numbers are lower than fresh ones
  select array(select l.event from late l union all select f.event from fresh f) as events,
         case when (select count(*) from late) < v_limit
           then pg_current_snapshot() end as next_snapshot
    into v_found;

  sequenced := cardinality(v_found.events);
  is_drained := sequenced < v_limit;
  if sequenced > 0 then
    v_events := rules.split_stuck_events(v_found.events, v_found.next_snapshot);
    if cardinality(v_events) > 0 then
      perform rules.sequence_events(v_events, v_found.next_snapshot);
    end if;
  end if;
  -- null if late events are left
  if v_found.next_snapshot is not null then
    perform rules.forget_gaps(pg_snapshot_xmin(v_found.next_snapshot));
  end if;
end
$$;
