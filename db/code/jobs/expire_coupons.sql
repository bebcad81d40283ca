-- Makes coupons of released batches EXPIRED whose valid_to has passed, and tells so, in one step of at most
-- p_limit rows; gives how many numbers were looked at, 0 when nothing is left. Batch by batch and by number, as
-- all coupons of a batch end together; those that were patched to another end are in core.coupon_extension.
-- Locked ones are left: they are freed, and then expire, when their lock ends.
create or replace function jobs.expire_coupons(p_limit int) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_batch  core.batch;
  v_last   int;
  v_now    timestamptz;
begin
  select b.* into v_batch
  from core.batch b
  where b.status = 'ALLOCATED' and b.expired_through < b.total_count and b.valid_to <= clock_timestamp()
  order by b.valid_to
  limit 1
  for no key update skip locked;
  if not found then
    return rules.expire_extended(p_limit);
  end if;
  v_now := clock_timestamp();
  v_last := least(v_batch.expired_through + p_limit, v_batch.total_count);
  perform rules.expire_set(v_batch.tenant_id, v_batch.distributor_id, v_now, array(
    select c.coupon_id
    from core.coupon c
    where c.tenant_id = v_batch.tenant_id
      and c.batch_id = v_batch.batch_id
      and c.number > v_batch.expired_through
      and c.number <= v_last
      and c.status = 'ISSUED'
      and c.valid_to <= v_now
    order by c.number
    for no key update));
  update core.batch b
  set expired_through = v_last
  where b.tenant_id = v_batch.tenant_id and b.batch_id = v_batch.batch_id;
  return v_last - v_batch.expired_through;
end
$$;
comment on function jobs.expire_coupons(int) is 'One step of expiry.';
