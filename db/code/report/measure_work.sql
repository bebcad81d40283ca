create or replace function report.measure_work(
  out waiting_events int, out oldest_event_seconds int,
  out waiting_deliveries int, out oldest_delivery_seconds int,
  out pending_batches int, out coupons_to_mint bigint, out coupons_to_recall bigint,
  out overdue_days int, out waiting_statements int,
  out broken_invariants bigint, out unchecked_invariants bigint, out oldest_check_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  select w.feed_waiting, w.feed_lag::int, w.delivery_waiting, w.delivery_lag::int,
         w.mint_batches, w.mint_coupons, w.recall_coupons, w.day_overdue, w.statement_waiting
    into waiting_events, oldest_event_seconds, waiting_deliveries, oldest_delivery_seconds,
         pending_batches, coupons_to_mint, coupons_to_recall, overdue_days, waiting_statements
  from jobs.read_metrics() w;
  select count(*) filter (where c.broken_rows > 0), count(*) filter (where c.checked_at is null),
         min(c.checked_at)
    into broken_invariants, unchecked_invariants, oldest_check_at
  from rules.list_invariants() c;
end
$$;
comment on function report.measure_work() is
  'The background work that waits now, and what the last checks of the invariants found. The '
  'seconds are the age of the oldest. Counts of events, deliveries and statements stop at 10,000, '
  'so this is always fast.';
