create or replace function rules.has_live_lock(p_coupon core.coupon, p_now timestamptz)
returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return exists (
    select
    from core.redemption r
    where r.coupon_id = p_coupon.coupon_id
      and r.tenant_id = p_coupon.tenant_id
      and r.status = 'LOCKED'
      and r.lock_expires_at > p_now);
end
$$;
comment on function rules.has_live_lock(core.coupon, timestamptz) is
  'Whether a coupon has a lock that has not expired.';
