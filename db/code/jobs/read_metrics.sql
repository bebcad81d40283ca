-- The state of background work for the worker's metrics, in one row. This is cheap even with a
-- large backlog: the counts of new events, deliveries and statements stop at 10,000, that of late
-- events at 1,000. The ages of deliveries (per webhook) and locks come from the first row of an
-- index. It reads all pending batches, running recalls, webhooks and ledger books. Lags are in
-- seconds; 0 means that nothing waits. The counts leave out events of stuck parties, and days whose
-- end the server cannot tell: see jobs.list_stuck_work. Of tenants that have left for another cell,
-- they have only events, which are sequenced as before.
create or replace function jobs.read_metrics(
  out feed_waiting int, out feed_lag float8, out delivery_waiting int, out delivery_lag float8,
  out webhook_disabled int, out mint_batches int, out mint_coupons bigint, out mint_lag float8,
  out recall_batches int, out recall_coupons bigint, out recall_lag float8,
  out day_overdue int, out day_lag float8, out statement_waiting int, out statement_lag float8,
  out lock_lag float8)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_now       timestamptz := clock_timestamp();
  v_departed  int[] := rules.find_departed();
  v_high      bigint;
  v_since     timestamptz;
begin
  -- committed events that are not in their feeds: new ones, and those that committed late
  select s.high_seq into strict v_high from core.sequencer s;
  select count(*), min(w.recorded_at) into feed_waiting, v_since
  from (
    (select e.recorded_at
     from rules.event e
     where e.event_seq > v_high order by e.event_seq limit 10000)
    union all
    select e.recorded_at
    from rules.event e
    where e.event_seq = any (array(
      select g.event_seq from core.event_gap g
      where g.drawn_before is not null order by g.drawn_before limit 1000))) w;
  feed_lag := coalesce(extract(epoch from v_now - v_since), 0);

  select count(*) into delivery_waiting
  from (
    select from core.delivery d
    where d.parked_at is null and d.tenant_id <> all (v_departed) limit 10000) w;
  -- the oldest due delivery to a subscriber that is enabled and not paused
  select count(*) filter (where w.disabled_at is not null),
         coalesce(extract(epoch from v_now - min(
           rules.find_next_attempt_time(w.tenant_id, w.party_id)) filter (
           where w.disabled_at is null and (w.paused_until is null or w.paused_until <= v_now))), 0)
    into webhook_disabled, delivery_lag
  from core.webhook w
  where w.tenant_id <> all (v_departed);

  select count(*), coalesce(sum(b.total_count - b.minted_count), 0),
         coalesce(extract(epoch from v_now - min(b.created_at)), 0)
    into mint_batches, mint_coupons, mint_lag
  from core.batch b
  where b.status = 'PENDING' and b.recalled_at is null and b.tenant_id <> all (v_departed);
  select r.* into recall_batches, recall_coupons, recall_lag from rules.measure_recalls(v_now) r;

  -- one row per distributor; a day is due once it has ended
  select count(*),
         coalesce(extract(epoch from v_now - min(
           (d.business_date + 1)::timestamp at time zone d.time_zone)), 0)
    into day_overdue, day_lag
  from rules.list_due_days(v_now) d
  where d.time_zone is not null;
  select count(*), coalesce(extract(epoch from v_now - min(s.closed_at)), 0)
    into statement_waiting, statement_lag
  from (
    select t.closed_at from core.statement t
    where t.ready_at is null and t.tenant_id <> all (v_departed) limit 10000) s;

  select coalesce(extract(epoch from v_now - min(r.lock_expires_at)), 0) into lock_lag
  from core.redemption r
  where r.status = 'LOCKED' and r.lock_expires_at <= v_now and r.tenant_id <> all (v_departed);
  delivery_lag := greatest(delivery_lag, 0);
end
$$;
