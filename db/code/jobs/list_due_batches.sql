-- Batches that no worker is minting: new ones, those whose lease has expired, and those whose
-- worker is gone. Batches of the tenant with the fewest batches in progress come first: a worker
-- mints two batches at once, so a tenant with many batches leaves room for other tenants. Among
-- these, the batch with the fewest missing coupons comes first, so a batch of ten does not wait for
-- one of a million. A worker mints only with the registered key: codes made with another key could
-- never be exported.
create or replace function jobs.list_due_batches(
  p_limit int, p_keys jsonb, out tenant_id int, out batch_id int)
returns setof record
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select d.tenant_id, d.batch_id
  from (
    select p.*,
           count(*) filter (where not p.is_due) over (partition by p.tenant_id)
           + row_number() over (
             partition by p.tenant_id, p.is_due order by p.missing, p.batch_id) as turn
    from (
      select b.tenant_id, b.batch_id, b.total_count - b.minted_count as missing,
             rules.is_batch_free(b.mint_lease_until, b.mint_worker) as is_due
      from core.batch b
      where b.status = 'PENDING'
        and b.recalled_at is null
        and rules.is_served(b.tenant_id)
        and rules.has_key(p_keys, b.key_version)) p) d
  where d.is_due
  order by d.turn, d.missing, d.tenant_id, d.batch_id
  limit p_limit;
end;
