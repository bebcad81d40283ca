-- Deletes the coupons of a sandbox with all that happened to them. Finds each row by an index: only
-- the rows of the sandbox are read.
create or replace function rules.delete_coupons_of_sandbox(p_tenant_id int) returns void
language plpgsql volatile as $$
begin
  delete from core.ledger_entry l
  using core.merchant m, core.redemption r
  left join core.reversal v on v.redemption_id = r.redemption_id and v.tenant_id = r.tenant_id
  where m.tenant_id = p_tenant_id
    and r.merchant_id = m.merchant_id
    and l.entry_id = any (array[r.redemption_id, v.reversal_id])
    and l.tenant_id = p_tenant_id;
  delete from core.reversal v
  using core.merchant m, core.redemption r
  where m.tenant_id = p_tenant_id
    and r.merchant_id = m.merchant_id
    and v.redemption_id = r.redemption_id
    and v.tenant_id = p_tenant_id;
  delete from core.redemption r
  using core.merchant m
  where m.tenant_id = p_tenant_id
    and r.merchant_id = m.merchant_id
    and r.tenant_id = p_tenant_id;
  delete from core.event e
  using core.batch b, core.coupon c
  where b.tenant_id = p_tenant_id
    and c.batch_id = b.batch_id
    and c.tenant_id = p_tenant_id
    and e.coupon_id = c.coupon_id
    and e.tenant_id = p_tenant_id;
  delete from core.voiding v
  using core.batch b, core.coupon c
  where b.tenant_id = p_tenant_id
    and c.batch_id = b.batch_id
    and c.tenant_id = p_tenant_id
    and v.coupon_id = c.coupon_id
    and v.tenant_id = p_tenant_id;
  delete from core.lock_cancellation l where l.tenant_id = p_tenant_id;
  delete from core.recalled_lock l where l.tenant_id = p_tenant_id;
  -- in one statement, because an extension is kept until its coupon has expired or is gone
  with extension as (
    delete from core.coupon_extension x where x.tenant_id = p_tenant_id)
  delete from core.coupon c
  using core.batch b
  where b.tenant_id = p_tenant_id
    and c.batch_id = b.batch_id
    and c.tenant_id = p_tenant_id;
end
$$;
