-- rules.read_export_page of the cell in which the tenant lives.
create or replace function rules.read_export_page(
  p_tenant_id int, p_batch_id int, p_after int, p_limit int,
  out number int, out code_attempt smallint, out lookup_hash uuid, out coupon_id text)
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_message  text;
begin
  return query
  select p.number, p.code_attempt, p.lookup_hash, p.coupon_id
  from remote.read_export_page(p_tenant_id, p_batch_id, p_after, p_limit) p;
exception when internal_error then
  get stacked diagnostics v_message = message_text;
  perform router.raise_failure('XX000', v_message);
end
$$;
