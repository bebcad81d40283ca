create or replace function admin.end_split(p_tenants text[]) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_done  int;
begin
  update core.tenant t
  set left_at = now()
  where t.external_id = any (coalesce(p_tenants, array[t.external_id]))
    and t.left_at = 'infinity'
    and core.is_departed(t.tenant_id);
  get diagnostics v_done = row_count;
  return v_done;
end
$$;
comment on function admin.end_split(text[]) is
  'The last step of a split, in both cells: from a day after it on, rows of these tenants, which '
  'live elsewhere, are deleted here. Null: of all that have left. Call it only when their cell '
  'serves them and has a backup. Returns how many begin.';
