-- An index of attempts by event would cost every delivery. So this reads the 200 attempts of the
-- subscriber that follow the event. It is security definer, because readers of reports call it and
-- may read no table.
create or replace function report.find_deliveries(
  p_id text, out tenant_id int, out event_key uuid, out delivery text, out attempts int,
  out next_attempt_at timestamptz, out last_answer text, out accepted_at timestamptz)
returns setof record
language plpgsql stable security definer rows 3
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  return query
  select e.tenant_id, e.event_id,
         case when d.parked_at is not null then 'PARKED'
              when d.event_id is not null then 'WAITING'
              when a.accepted_at is not null then 'DELIVERED' end,
         coalesce(d.attempt_count, a.attempts)::int, d.next_attempt_at::timestamptz,
         coalesce(d.last_error, a.last_answer), a.accepted_at
  from rules.event e
  left join core.delivery d
    on d.tenant_id = e.tenant_id and d.party_id = e.party_id and d.event_id = e.event_id
  cross join lateral (
    select count(*) as attempts,
           min(n.attempted_at) filter (where n.http_status between 200 and 299) as accepted_at,
           (array_agg(coalesce(n.error, 'HTTP ' || n.http_status) order by n.attempted_at desc))[1]
             as last_answer
    from (
      select x.event_id, x.http_status, x.error, x.attempted_at
      from core.delivery_attempt x
      where x.tenant_id = e.tenant_id
        and x.party_id = e.party_id
        and x.attempted_at >= e.recorded_at
      order by x.attempted_at, x.attempt_id
      limit 200) n
    where n.event_id = e.event_id) a
  where e.event_id = any (report.find_keys(p_id));
end
$$;
comment on function report.find_deliveries(text) is
  'How the webhook took the events of this ID: cpn_…, red_…, rvs_…, led_… or evt_…. WAITING and '
  'PARKED with all attempts; others only with those among the next 200 attempts of the subscriber. '
  'delivery is null: there is no webhook for it, or it took the event later.';
