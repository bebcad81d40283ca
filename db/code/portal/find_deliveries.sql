-- report.find_deliveries of the events of the company.
create or replace function portal.find_deliveries(p_id text)
returns table (
  tenant_id int, event_key uuid, delivery text, attempts int, next_attempt_at timestamptz,
  last_answer text, accepted_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select f.tenant_id, f.event_key, f.delivery, f.attempts, f.next_attempt_at, f.last_answer,
         f.accepted_at
  from report.find_deliveries(p_id) f
  where exists (
    select from portal.find_event(p_id) e
    where e.tenant_id = f.tenant_id and e.event_key = f.event_key);
end;
