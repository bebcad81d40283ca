-- Lines of a file of a closed business day after line p_after.
create or replace function jobs.read_statement_page(
  p_tenant_id int, p_distributor_id int, p_business_date date, p_kind text,
  p_after int, p_limit int,
  out number int, out fields text[])
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select p.number, p.fields
  from rules.read_statement_page(
    p_tenant_id, p_distributor_id, p_business_date, p_kind, p_after, p_limit) p;
end;
comment on function jobs.read_statement_page(int, int, date, text, int, int) is
  'Lines of a file of a closed business day.';
