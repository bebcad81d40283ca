-- Waits for the transactions that lock or redeem coupons of a tenant, and keeps new ones out until
-- the end of this transaction. Each of them shares this lock before it reads the batches. So it
-- either ends before this returns, or sees what this transaction has changed. Returns false if
-- one is running and this may not wait. It is an advisory lock, because one on the batch's row
-- would be a write in each redemption.
create or replace function rules.hold_redemptions(p_tenant_id int, p_may_wait boolean)
returns boolean
language plpgsql volatile as $$
begin
  if p_may_wait then
    perform pg_advisory_xact_lock(rules.compute_redemptions_lock(p_tenant_id));
    return true;
  end if;
  return pg_try_advisory_xact_lock(rules.compute_redemptions_lock(p_tenant_id));
end
$$;
