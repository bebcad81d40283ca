-- Takes or renews the lease of a batch for 30 s and returns the numbers to mint next. Returns no
-- row if the batch is complete or recalled, another worker holds the lease, this worker lacks the
-- batch's key, or the session of this worker is gone. A lease no longer counts once the session of
-- its worker is gone. event_seq is the same as in jobs.mint_chunk. It tells the worker after its
-- first chunk whether the service is busy.
create or replace function jobs.lease_batch(
  p_tenant_id int, p_batch_id int, p_worker int, p_holder uuid, p_chunk int, p_keys jsonb,
  out salt bytea, out key_version text, out first_number int, out last_number int,
  out event_seq bigint)
returns setof record
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  update core.batch b
  set mint_holder = p_holder, mint_worker = p_worker,
      mint_lease_until = clock_timestamp() + interval '30 seconds'
  where b.tenant_id = p_tenant_id
    and b.batch_id = p_batch_id
    and b.status = 'PENDING'
    and b.recalled_at is null
    and rules.is_served(b.tenant_id)
    and (b.mint_holder = p_holder or rules.is_batch_free(b.mint_lease_until, b.mint_worker))
    and not rules.is_worker_gone(p_worker)
    and rules.has_key(p_keys, b.key_version)
  returning b.salt, b.key_version, b.minted_count + 1,
            least(b.minted_count + p_chunk, b.total_count),
            (select s.last_value from core.event_seq s);
end;
