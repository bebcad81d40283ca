-- Batches that no worker is minting: new ones, and those whose lease has expired. Those with the
-- fewest missing coupons come first, so that a batch of ten does not wait for one of a million.
create or replace function jobs.list_due_batches(
  p_limit int, out tenant_id int, out batch_id int, out external_id text)
returns setof record
language sql stable security definer
begin atomic
  select b.tenant_id, b.batch_id, b.external_id
  from core.batch b
  where b.status = 'PENDING'
    and (b.mint_lease_until is null or b.mint_lease_until <= clock_timestamp())
  order by b.total_count - b.minted_count, b.tenant_id, b.batch_id
  limit p_limit;
end;
comment on function jobs.list_due_batches(int) is 'Batches that wait for a worker.';
