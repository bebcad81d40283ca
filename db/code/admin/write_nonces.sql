create or replace function admin.write_nonces(p_nonces jsonb) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  insert into core.nonce
  select n.*
  from jsonb_populate_recordset(null::core.nonce, p_nonces) n
  on conflict do nothing;
end;
comment on function admin.write_nonces(jsonb) is 'Adds what admin.read_nonces has returned.';
