-- Batches that no worker is minting: new ones, those whose lease has expired, and those whose
-- worker is gone. Those with the fewest missing coupons come first, so that a batch of ten does not
-- wait for one of a million. A worker mints only with the registered key: with another key nobody
-- could ever export the codes.
create or replace function jobs.list_due_batches(
  p_limit int, p_keys jsonb, out tenant_id int, out batch_id int)
returns setof record
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select b.tenant_id, b.batch_id
  from core.batch b
  where b.status = 'PENDING'
    and (b.mint_lease_until is null
         or b.mint_lease_until <= clock_timestamp()
         or rules.is_worker_gone(b.mint_worker))
    and rules.has_key(p_keys, b.key_version)
  order by b.total_count - b.minted_count, b.tenant_id, b.batch_id
  limit p_limit;
end;
comment on function jobs.list_due_batches(int, jsonb) is
  'Batches that wait for a worker with these keys.';
