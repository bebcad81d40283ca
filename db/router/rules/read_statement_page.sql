-- rules.read_statement_page of the cell in which the tenant lives.
create or replace function rules.read_statement_page(
  p_tenant_id int, p_distributor_id int, p_business_date date, p_kind text,
  p_after int, p_limit int,
  out number int, out fields text[])
returns setof record
language plproxy volatile security definer set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(router.find_cell(p_tenant_id));
  run on 0;
  target rules.read_statement_page;
$$;
