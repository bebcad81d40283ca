-- Makes coupons of released batches EXPIRED whose valid_to has passed, and tells so, in one step of at most
-- p_limit rows; gives how many numbers were looked at, 0 when nothing is left. Batch by batch and by number, as
-- all coupons of a batch end together; those that were patched to another end are in core.coupon_extension.
-- Locked ones are left: they are freed, and then expire, when their lock ends. A coupon that somebody holds keeps
-- those behind it in its batch waiting, and nobody else.
create or replace function jobs.expire_coupons(p_limit int) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
declare
  v_due      timestamptz := clock_timestamp();
  v_batch    core.batch;
  v_reached  int;
begin
  for v_batch in
    select b.*
    from core.batch b
    where b.status = 'ALLOCATED' and b.expired_through < b.total_count and b.valid_to <= v_due
    order by b.valid_to
    for no key update skip locked
  loop
    v_reached := rules.expire_range(
      v_batch, v_batch.expired_through, least(v_batch.expired_through + p_limit, v_batch.total_count), v_due);
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
comment on function jobs.expire_coupons(int) is 'One step of expiry.';
