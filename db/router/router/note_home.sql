-- Notes in which cell a tenant lives.
create or replace function router.note_home(p_tenant_id int, p_cell int) returns void
language sql volatile
begin atomic
  insert into router.tenant as t (tenant_id, cell)
  select p_tenant_id, p_cell
  where router.find_cell(p_tenant_id) <> p_cell
  on conflict (tenant_id) do update
  set cell = excluded.cell;
end;
