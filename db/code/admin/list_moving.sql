create or replace function admin.list_moving(
  p_tenants text[],
  out tenant text, out home int, out attempt int, out drained int)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select t.external_id, t.home::int, t.fence, t.drained
  from core.tenant t
  where t.external_id = any (p_tenants)
     or t.fence = any (array(
       select m.fence from core.tenant m where m.external_id = any (p_tenants)))
  order by 1;
end;
comment on function admin.list_moving(text[]) is
  'Where tenants live, and the attempt that moves them: null, if none does. With them come all '
  'others that the attempt moves. drained: the attempt before whose fence every call has ended.';
