-- console.read_statement_page of the company's statements.
create or replace function portal.read_statement_page(
  p_tenant text, p_distributor text, p_business_date date, p_kind text, p_after int, p_limit int)
returns table (number int, fields text[])
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select l.number, l.fields
  from portal.statement s
  cross join lateral console.read_statement_page(
    s.tenant, s.distributor, s.business_date, p_kind, p_after, p_limit) l
  where s.tenant = p_tenant
    and s.distributor = p_distributor
    and s.business_date = p_business_date
  order by l.number;
end;
