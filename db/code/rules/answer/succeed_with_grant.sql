-- The answer to a lock or redeem that is granted: the columns of its redemption instead of a body.
create or replace function rules.succeed_with_grant(
  p_ordinal int, p_redemption_id uuid, p_coupon_id uuid, p_discount_amount numeric,
  p_currency text, p_lock_expires_at timestamptz)
returns core.answer
language sql immutable
return (200, null, null, null, p_ordinal, false, p_redemption_id, p_coupon_id, p_discount_amount,
        p_currency, p_lock_expires_at)::core.answer;
