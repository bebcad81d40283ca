-- One step of a recall: voids the unused coupons among the next p_limit numbers of the batch and
-- counts them. After the last number, it waits for the locks that it found on the way: each step
-- counts those that have ended, and the last one finishes the recall. Locks the batch's row, so the
-- count is exact. A step whose holder lost the lease changes nothing.
--
-- is_over: this job has nothing more to do. If it waits for locks, the lease stays for 5 s as a
-- pause. is_held_up: another session holds the next coupon.
--
-- Only the commit that ends a job waits for the disk. A crash that loses a step also loses its
-- count, and the recall repeats it. Nobody has seen its events: the feed gets them by a commit that
-- is later in the write-ahead log and waits for the disk.
--
-- first_seq and last_seq: the highest event number drawn before and after this step. If another
-- session draws numbers between two steps, the service is busy.
create or replace function jobs.recall_chunk(
  p_tenant_id int, p_batch_id int, p_holder uuid, p_limit int,
  out is_over boolean, out is_held_up boolean, out first_seq bigint, out last_seq bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_batch  core.batch;
  v_last   int;
  v_step   record;
begin
  select b.* into v_batch
  from core.batch b
  where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id
  for no key update;
  first_seq := (select s.last_value from core.event_seq s);
  is_held_up := false;
  -- a batch of a sandbox may be gone
  is_over := v_batch.mint_holder is distinct from p_holder;
  if is_over then
    return;
  end if;

  if v_batch.recalled_through < v_batch.minted_count then
    v_last := least(v_batch.recalled_through + p_limit, v_batch.minted_count);
    v_step := rules.recall_range(v_batch, v_batch.recalled_through, v_last);
    is_held_up := v_step.reached < v_last;
    update core.batch b
    set recalled_through = v_step.reached,
        recall_voided_count = b.recall_voided_count + v_step.voided,
        mint_lease_until = clock_timestamp() + interval '30 seconds'
    where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id;
    perform set_config('synchronous_commit', 'off', true);
  else
    v_step := rules.end_recalled_locks(v_batch);
    is_over := true;
    update core.batch b
    set recall_voided_count = b.recall_voided_count + v_step.voided,
        recall_finished_at = case when not v_step.is_waiting then clock_timestamp() end,
        mint_holder = case when v_step.is_waiting then p_holder end,
        mint_worker = case when v_step.is_waiting then v_batch.mint_worker end,
        mint_lease_until = case
          when v_step.is_waiting then clock_timestamp() + interval '5 seconds'
        end
    where b.tenant_id = p_tenant_id and b.batch_id = p_batch_id;
  end if;
  last_seq := (select s.last_value from core.event_seq s);
end
$$;
