create or replace function admin.read_nonces(p_attempt int) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
return (
  select coalesce(jsonb_agg(to_jsonb(n)), '[]')
  from core.tenant t
  join core.nonce n on n.tenant_id = t.tenant_id
  where t.fence = p_attempt);
comment on function admin.read_nonces(int) is
  'The nonces of tenants that an attempt moves. They are not in the log, so a copy has none.';
