-- This is a function because report.ledger looks up the redemption of each entry, and two hours may
-- have a million. It is security definer, because readers of reports call it and may read no table.
create or replace function report.count_minutes(
  p_minutes int, out minute timestamptz, out redemptions bigint, out reversals bigint)
returns setof record
language plpgsql stable security definer rows 120
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_last   timestamptz := date_trunc('minute', statement_timestamp());
  v_first  timestamptz := v_last - make_interval(mins => p_minutes - 1);
begin
  return query
  select m.minute, coalesce(n.redemptions, 0), coalesce(n.reversals, 0)
  from generate_series(v_first, v_last, interval '1 minute') m (minute)
  left join (
    select date_trunc('minute', l.recorded_at) as minute,
           count(*) filter (where l.entry_type = 'REDEMPTION') as redemptions,
           count(*) filter (where l.entry_type = 'REVERSAL') as reversals
    from core.ledger_entry l
    where l.recorded_at >= v_first
    group by 1) n on n.minute = m.minute
  order by m.minute;
end
$$;
comment on function report.count_minutes(int) is
  'Redemptions and reversals in each of the last p_minutes, of all tenants; 0 where there were '
  'none. Reads the ledger entries of that time, by their index.';
