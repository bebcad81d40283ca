-- One step of expiry: makes released coupons EXPIRED after valid_to and writes an event for each,
-- for at most p_limit coupon numbers. Returns how many numbers it handled; 0 means that nothing is
-- left.
--
-- Goes through each batch in order of number, because the coupons of a batch expire together.
-- Coupons with a patched valid_to are in core.coupon_extension and come last. Skips LOCKED coupons:
-- they expire when their lock ends. A coupon whose row another session holds delays only the
-- coupons after it in its batch. So does one that cannot expire: its batch rests for a minute.
create or replace function jobs.expire_coupons(p_limit int) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off as $$
declare
  v_due       timestamptz := clock_timestamp();
  v_departed  int[] := rules.find_departed();
  v_batch     core.batch;
  v_reached   int;
  v_reason    text;
begin
  for v_batch in
    select b.*
    from core.batch b
    where b.status = 'ALLOCATED' and b.expired_through < b.total_count and b.valid_to <= v_due
      and b.tenant_id <> all (v_departed)
      and not rules.is_resting('expiry', b.tenant_id, b.distributor_id, b.external_id)
    order by b.valid_to
    for no key update skip locked
  loop
    begin
      v_reached := rules.expire_range(
        v_batch, v_batch.expired_through,
        least(v_batch.expired_through + p_limit, v_batch.total_count), v_due);
    exception when data_exception or integrity_constraint_violation then
      get stacked diagnostics v_reason = message_text;
      perform rules.note_stuck_work(
        'expiry', v_batch.tenant_id, v_batch.distributor_id, v_batch.external_id, v_reason);
      continue;
    end;
    if v_reached > v_batch.expired_through then
      update core.batch b
      set expired_through = v_reached
      where b.tenant_id = v_batch.tenant_id and b.batch_id = v_batch.batch_id;
      return v_reached - v_batch.expired_through;
    end if;
  end loop;
  return rules.expire_extended(p_limit);
end
$$;
