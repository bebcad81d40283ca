-- Notes whose an access key is, and where its tenant lives.
create or replace function router.note_credential(p_access_key text, p_tenant_id int, p_cell int)
returns void
language sql volatile
begin atomic
  insert into router.credential as k (access_key, tenant_id)
  values (p_access_key, p_tenant_id)
  on conflict (access_key) do update
  set tenant_id = excluded.tenant_id
  where k.tenant_id <> excluded.tenant_id;
  select router.note_home(p_tenant_id, p_cell);
end;
