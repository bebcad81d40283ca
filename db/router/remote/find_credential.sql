create or replace function remote.find_credential(
  p_cell int, p_access_key text,
  out tenant_id int, out credential_id int, out variant text, out amount_unit text,
  out sealed_secret bytea)
returns setof record
language plproxy volatile set search_path = pg_catalog, pg_temp as $$
  cluster router.name_server(p_cell);
  run on 0;
  select c.tenant_id, c.credential_id, c.variant, c.amount_unit, c.sealed_secret
  from gate.find_credential(p_access_key) c;
$$;
