-- Whether a cancel arrived before its lock, for any of these coupons. That is rare.
create or replace function rules.has_cancellation(p_tenant_id int, p_coupon_ids uuid[])
returns boolean
language plpgsql stable as $$
begin
  return exists (
    select
    from core.lock_cancellation x
    where x.tenant_id = p_tenant_id and x.coupon_id = any (p_coupon_ids));
end
$$;
