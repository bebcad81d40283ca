-- rules.read_export_page of the cell in which the tenant lives.
create or replace function rules.read_export_page(
  p_tenant_id int, p_batch_id int, p_after int, p_limit int,
  out number int, out code_attempt smallint, out lookup_hash uuid, out coupon_id text)
returns setof record
language plproxy volatile security definer set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(router.find_cell(p_tenant_id));
  run on 0;
  target rules.read_export_page;
$$;
