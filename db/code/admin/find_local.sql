create or replace function admin.find_local(p_ids text[]) returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select t.external_id
  from core.tenant t
  where t.external_id = any (p_ids) and t.home = core.read_cell()
  union all
  select b.external_id
  from core.batch b
  join core.tenant t on t.tenant_id = b.tenant_id
  where b.external_id = any (p_ids) and t.home = core.read_cell()
  union all
  select c.access_key
  from core.credential c
  join core.tenant t on t.tenant_id = c.tenant_id
  where c.access_key = any (p_ids) and t.home = core.read_cell();
end;
comment on function admin.find_local(text[]) is
  'Those of the IDs (tenants, batches, access keys, revoked ones too) whose tenant lives in this '
  'cell. Commands ask all cells for the one to work in.';
