-- rules.read_statement_page of the cell in which the tenant lives.
create or replace function rules.read_statement_page(
  p_tenant_id int, p_distributor_id int, p_business_date date, p_kind text,
  p_after int, p_limit int,
  out number int, out fields text[])
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_message  text;
begin
  return query
  select p.number, p.fields
  from remote.read_statement_page(
    p_tenant_id, p_distributor_id, p_business_date, p_kind, p_after, p_limit) p;
exception when internal_error then
  get stacked diagnostics v_message = message_text;
  perform router.raise_failure('XX000', v_message);
end
$$;
