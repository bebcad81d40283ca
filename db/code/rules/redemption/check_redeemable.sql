-- Whether a coupon can be locked or redeemed now; the reasons are in the order of the error table.
-- EXPIRED comes before LOCKED: after valid_to it is no use to wait for another lock to end.
create or replace function rules.check_redeemable(
  p_call core.call, p_coupon core.coupon, p_batch_status text, p_currency text,
  p_is_in_scope boolean, p_is_cancelled boolean, p_lock_expires_at timestamptz, p_now timestamptz)
returns core.answer
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  v_code  text;
begin
  v_code := case
    when not p_is_in_scope then 'MERCHANT_NOT_IN_SCOPE'
    when p_is_cancelled then 'LOCK_CANCELLED'
    when p_coupon.status = 'VOIDED' then 'COUPON_VOIDED'
    when p_coupon.status = 'REDEEMED' then 'COUPON_REDEEMED'
    when p_coupon.status = 'EXPIRED' or p_coupon.valid_to <= p_now then 'COUPON_EXPIRED'
    when p_coupon.status = 'LOCKED' and p_lock_expires_at > p_now then 'COUPON_LOCKED'
    when p_batch_status <> 'ALLOCATED' then 'COUPON_NOT_RELEASED'
    when p_coupon.valid_from > p_now then 'COUPON_NOT_YET_VALID'
    when p_call.args ->> 'currency' <> p_currency then 'CURRENCY_MISMATCH'
  end;
  if v_code is null then
    return null;
  elsif v_code = 'COUPON_LOCKED' then
    return rules.refuse(p_call, v_code,
      format('{"lock_expires_at":"%s"}', rules.format_time(p_lock_expires_at))::json);
  end if;
  return rules.refuse(p_call, v_code);
end
$$;
comment on function rules.check_redeemable(
  core.call, core.coupon, text, text, boolean, boolean, timestamptz, timestamptz) is
  'The first reason why a coupon cannot be locked or redeemed now; null: none.';
