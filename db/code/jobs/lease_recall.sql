-- Takes or renews the lease of a recalled batch for 30 s. Returns false if the recall is finished,
-- another worker holds the lease, or the session of this worker is gone. A lease no longer counts
-- once the session of its worker is gone.
create or replace function jobs.lease_recall(
  p_tenant_id int, p_batch_id int, p_worker int, p_holder uuid)
returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update core.batch b
  set mint_holder = p_holder, mint_worker = p_worker,
      mint_lease_until = clock_timestamp() + interval '30 seconds'
  where b.tenant_id = p_tenant_id
    and b.batch_id = p_batch_id
    and b.recalled_at is not null
    and b.recall_finished_at is null
    and rules.is_served(b.tenant_id)
    and (b.mint_holder = p_holder or rules.is_batch_free(b.mint_lease_until, b.mint_worker))
    and not rules.is_worker_gone(p_worker);
  return found;
end
$$;
