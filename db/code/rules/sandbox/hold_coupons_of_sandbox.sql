-- Locks all coupons of a sandbox.
create or replace function rules.hold_coupons_of_sandbox(p_tenant_id int) returns void
language plpgsql volatile as $$
begin
  perform
  from core.batch b
  join core.coupon c on c.batch_id = b.batch_id and c.tenant_id = b.tenant_id
  where b.tenant_id = p_tenant_id
  for update of c;
end
$$;
