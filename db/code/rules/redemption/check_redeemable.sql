-- Why a coupon cannot be locked or redeemed now. The reasons are in the order of the error table.
-- EXPIRED comes before LOCKED: after valid_to, waiting for another lock to end is of no use. A lock
-- that has expired is gone (p_is_lapsed); before a lock or redeem, rules.lapse_group_locks ends it.
create or replace function rules.check_redeemable(
  p_coupon core.coupon, p_batch_status text, p_is_in_scope boolean, p_is_cancelled boolean,
  p_is_lapsed boolean, p_now timestamptz)
returns text
language sql immutable
return case
  when not p_is_in_scope then 'MERCHANT_NOT_IN_SCOPE'
  when p_is_cancelled then 'LOCK_CANCELLED'
  when p_batch_status = 'SUSPENDED' then 'BATCH_SUSPENDED'
  when p_coupon.status = 'VOIDED' then 'COUPON_VOIDED'
  when p_coupon.status = 'REDEEMED' then 'COUPON_REDEEMED'
  when p_coupon.status = 'EXPIRED' or p_coupon.valid_to <= p_now then 'COUPON_EXPIRED'
  when p_coupon.status = 'LOCKED' and not p_is_lapsed then 'COUPON_LOCKED'
  when p_batch_status <> 'ALLOCATED' then 'COUPON_NOT_RELEASED'
  when p_coupon.valid_from > p_now then 'COUPON_NOT_YET_VALID'
end;
