-- One step of expiry for coupons whose valid_to was patched. A coupon leaves the list when it and
-- its batch have ended: until then the list shows which coupons of a valid batch have expired,
-- which report.batch counts. A locked one stays until its lock has ended, because the list shows
-- that its master key is in use. A coupon of an unreleased batch stays too. A coupon whose rows
-- prevent its expiry rests for a minute.
create or replace function rules.expire_extended(p_limit int) returns int
language plpgsql volatile as $$
declare
  v_due       timestamptz := clock_timestamp();  -- constant, so that it bounds the index scan
  v_departed  int[] := rules.find_departed();
  v_row       record;
  v_reason    text;
  v_done      int := 0;
begin
  for v_row in
    select c.tenant_id, c.coupon_id, c.status, b.distributor_id,
           b.valid_to <= v_due as is_over
    from core.coupon_extension x
    join core.coupon c on c.tenant_id = x.tenant_id and c.coupon_id = x.coupon_id
    join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
    where x.valid_to <= v_due and x.tenant_id <> all (v_departed)
      and c.valid_to <= v_due  -- checked again once locked: it may have been extended
      and (c.status = 'ISSUED' or c.status <> 'LOCKED' and b.valid_to <= v_due)
      and b.status = 'ALLOCATED'
      and not rules.is_resting(
        'expiry', b.tenant_id, b.distributor_id, rules.format_id('cpn', c.coupon_id))
    order by x.valid_to
    limit p_limit
    for no key update of c skip locked
  loop
    begin
      if v_row.status = 'ISSUED' then
        perform rules.expire_coupons(v_row.tenant_id, v_row.distributor_id, array[v_row.coupon_id]);
      end if;
      delete from core.coupon_extension x
      where x.tenant_id = v_row.tenant_id and x.coupon_id = v_row.coupon_id and v_row.is_over;
      v_done := v_done + 1;
    exception when data_exception or integrity_constraint_violation then
      get stacked diagnostics v_reason = message_text;
      perform rules.note_stuck_work(
        'expiry', v_row.tenant_id, v_row.distributor_id, rules.format_id('cpn', v_row.coupon_id),
        v_reason);
    end;
  end loop;
  return v_done;
end
$$;
