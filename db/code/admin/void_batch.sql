create or replace function admin.void_batch(p_tenant text, p_batch text, p_reason text) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_batch   core.batch := rules.find_batch(p_batch);
  v_coupon  core.coupon;
  v_done    int := 0;
begin
  perform from core.tenant t where t.external_id = p_tenant and t.tenant_id = v_batch.tenant_id;
  if not found then
    raise exception 'tenant % has no batch %', p_tenant, p_batch using errcode = 'CP404';
  end if;
  for v_coupon in
    select c.*
    from core.coupon c
    where c.tenant_id = v_batch.tenant_id
      and c.batch_id = v_batch.batch_id
      and c.status = 'ISSUED'
      and c.valid_to > clock_timestamp()
    order by c.number
    limit 10000
    for no key update skip locked
  loop
    perform rules.write_voiding(
      v_coupon, v_batch.distributor_id, null, 0, v_reason, clock_timestamp());
    v_done := v_done + 1;
  end loop;
  if v_done > 0 then
    perform rules.write_audit(v_batch.tenant_id, 'void_batch', p_batch, v_reason,
      jsonb_build_object('voided', v_done));
  end if;
  return v_done;
end
$$;
comment on function admin.void_batch(text, text, text) is
  'Voids the unused coupons of a batch, released or not, at most 10,000 per call. Returns how '
  'many. Call it until it returns 0. Skips coupons that a till has locked, or whose row another '
  'session holds. If the batch is still being minted, call it again afterwards.';
