-- report.find_positions of the events of the company.
create or replace function portal.find_positions(p_id text)
returns table (tenant_id int, event_key uuid, feed_position bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select f.tenant_id, f.event_key, f.feed_position
  from report.find_positions(p_id) f
  where exists (
    select from portal.find_event(p_id) e
    where e.tenant_id = f.tenant_id and e.event_key = f.event_key);
end;
