-- Locks the rows of a redemption and its coupon until the end of the transaction, and waits for
-- them: the coupon first, as everywhere. The calling function has checked that the caller may see
-- the redemption: nobody waits for, or holds, what it may not see.
create or replace function rules.hold_redemption_and_coupon(p_tenant_id int, p_redemption_id uuid)
returns void
language plpgsql volatile as $$
begin
  perform
  from core.coupon k
  where k.tenant_id = p_tenant_id and k.coupon_id = (
    select r.coupon_id
    from core.redemption r
    where r.tenant_id = p_tenant_id and r.redemption_id = p_redemption_id)
  for no key update;
  perform
  from core.redemption r
  where r.tenant_id = p_tenant_id and r.redemption_id = p_redemption_id
  for no key update;
end
$$;
