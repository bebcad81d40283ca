-- Lines of a file of a closed business day after line p_after, for streaming page by page. The
-- planner settings keep it from hashing whole tables, which costs four times as much. Dates are in
-- ISO 8601.
create or replace function rules.read_statement_page(
  p_tenant_id int, p_distributor_id int, p_business_date date, p_kind text,
  p_after int, p_limit int,
  out number int, out fields text[])
returns setof record
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set datestyle = 'ISO' set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
begin
  if p_kind = 'detail' then
    return query select d.number, d.fields
    from rules.read_detail_page(
      p_tenant_id, p_distributor_id, p_business_date, p_after, p_limit) d;
  else
    return query select s.number, s.fields
    from rules.read_summary_page(
      p_tenant_id, p_distributor_id, p_business_date, p_after, p_limit) s;
  end if;
end
$$;
