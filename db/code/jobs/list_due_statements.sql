-- Closed days whose files are not rendered yet. Returns only the earliest of each distributor,
-- because days become ready in order.
create or replace function jobs.list_due_statements(
  p_limit int, out tenant_id int, out distributor_id int, out business_date date)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select s.tenant_id, s.distributor_id, min(s.business_date)
  from core.statement s
  where s.ready_at is null and rules.is_served(s.tenant_id)
  group by s.tenant_id, s.distributor_id
  order by 3
  limit p_limit;
end;
