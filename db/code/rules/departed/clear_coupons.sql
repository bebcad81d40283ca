-- Deletes the next coupons of a tenant that has left, at most p_limit, with all that happened to
-- them, and their batch with its last coupon. Returns how many coupons and batches. Finds each row
-- by an index.
create or replace function rules.clear_coupons(p_tenant_id int, p_limit int) returns int
language plpgsql volatile as $$
declare
  v_batch        core.batch;
  v_coupons      uuid[];
  v_redemptions  uuid[];
  v_reversals    uuid[];
begin
  select b.* into v_batch
  from core.batch b
  where b.tenant_id = p_tenant_id
  order by b.batch_id
  limit 1;
  if not found then
    return 0;
  end if;
  v_coupons := rules.find_uncleared(v_batch, p_limit);
  v_redemptions := array(
    select r.redemption_id
    from core.redemption r
    where r.coupon_id = any (v_coupons) and r.tenant_id = p_tenant_id);
  v_reversals := array(
    select v.reversal_id
    from core.reversal v
    where v.redemption_id = any (v_redemptions) and v.tenant_id = p_tenant_id);
  delete from core.ledger_entry l
  where l.entry_id = any (v_redemptions || v_reversals) and l.tenant_id = p_tenant_id;
  delete from core.reversal v
  where v.reversal_id = any (v_reversals) and v.tenant_id = p_tenant_id;
  delete from core.redemption r
  where r.redemption_id = any (v_redemptions) and r.tenant_id = p_tenant_id;
  delete from core.event e
  where e.coupon_id = any (v_coupons) and e.tenant_id = p_tenant_id;
  delete from core.voiding v
  where v.coupon_id = any (v_coupons) and v.tenant_id = p_tenant_id;
  delete from core.lock_cancellation l
  where l.tenant_id = p_tenant_id and l.coupon_id = any (v_coupons);
  -- in one statement, because an extension is kept until its coupon has expired or is gone
  with extension as (
    delete from core.coupon_extension x
    where x.tenant_id = p_tenant_id and x.coupon_id = any (v_coupons))
  delete from core.coupon c
  where c.coupon_id = any (v_coupons) and c.tenant_id = p_tenant_id;
  if cardinality(v_coupons) = p_limit or exists (
    select
    from core.coupon c
    where c.batch_id = v_batch.batch_id and c.tenant_id = p_tenant_id)
  then
    return cardinality(v_coupons);
  end if;
  delete from core.batch b where b.tenant_id = p_tenant_id and b.batch_id = v_batch.batch_id;
  return cardinality(v_coupons) + 1;
end
$$;
