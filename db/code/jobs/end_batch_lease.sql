-- Ends the lease of a batch between two slices of a large batch, so that others get their turn.
create or replace function jobs.end_batch_lease(p_tenant_id int, p_batch_id int, p_holder uuid)
returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  update core.batch b
  set mint_holder = null, mint_worker = null, mint_lease_until = null
  where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id and b.mint_holder = p_holder;
end;
