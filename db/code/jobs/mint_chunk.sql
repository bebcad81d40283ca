-- Mints the coupons of a batch from number p_first_number, one for each lookup hash, and counts
-- them: the whole chunk or nothing. Locks the batch's row, so the count is exact. A chunk that is
-- not the next one, or whose holder lost the lease to another, changes nothing and returns the
-- current count.
--
-- Codes have 55 random bits, so two coupons of a tenant can get the same code: in ten batches of
-- ten million, 0.14 such pairs are expected. Then this writes nothing and returns their numbers in
-- collided. The worker derives new codes for them and calls again with higher p_attempts.
--
-- Only the commit of the last chunk waits for the disk. The write-ahead log is written in order, so
-- after any crash a batch that was reported complete has all its coupons. A crash that loses a
-- chunk also loses its count and all later chunks; they are minted again.
--
-- event_seq: the highest event number drawn so far. If it rises between two chunks, the service is
-- busy.
create or replace function jobs.mint_chunk(
  p_tenant_id int, p_batch_id int, p_holder uuid, p_first_number int, p_lookup_hashes uuid[],
  p_attempts smallint[] default null,
  out minted_count int, out is_complete boolean, out collided int[], out event_seq bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_batch  core.batch;
  v_now    timestamptz;
  v_last   int := p_first_number + cardinality(p_lookup_hashes) - 1;
begin
  select b.* into v_batch
  from core.batch b
  where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id
  for no key update;
  v_now := clock_timestamp();
  event_seq := (select s.last_value from core.event_seq s);
  minted_count := v_batch.minted_count;
  -- a batch of a sandbox may be gone
  is_complete := v_batch.status is distinct from 'PENDING';
  if is_complete
     or v_batch.mint_holder is distinct from p_holder
     or p_first_number <> v_batch.minted_count + 1
     or v_last > v_batch.total_count
  then
    return;
  end if;

  begin
    insert into core.coupon
      (tenant_id, batch_id, number, code_attempt, coupon_id, lookup_hash,
       valid_from, valid_to, created_at)
    select p_tenant_id, p_batch_id, p_first_number + h.ordinality - 1,
           coalesce(p_attempts[h.ordinality], 0), rules.make_id(), h.lookup_hash,
           v_batch.valid_from, v_batch.valid_to, v_now
    from unnest(p_lookup_hashes) with ordinality h (lookup_hash, ordinality);
  exception when unique_violation then
    collided := rules.find_collisions(p_tenant_id, p_first_number, p_lookup_hashes);
    -- No code is taken, so a number is: a coupon was inserted by hand.
    if collided is null then
      raise;
    end if;
    return;
  end;

  minted_count := v_last;
  is_complete := v_last = v_batch.total_count;
  update core.batch b
  set minted_count = v_last,
      status = case when is_complete then 'COMPLETED' else 'PENDING' end,
      completed_at = case when is_complete then v_now end,
      mint_holder = case when not is_complete then p_holder end,
      mint_worker = case when not is_complete then v_batch.mint_worker end,
      mint_lease_until = case when not is_complete then v_now + interval '30 seconds' end
  -- equivalent mutant (operand b.tenant_id = p_tenant_id): a batch_id is unique across tenants
  where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id;
  if not is_complete then
    perform set_config('synchronous_commit', 'off', true);
  else
    perform rules.write_event(
      p_tenant_id, rules.make_id(), 'batch.generated', v_batch.maker_id, p_batch_id, null, v_now);
  end if;
end
$$;
