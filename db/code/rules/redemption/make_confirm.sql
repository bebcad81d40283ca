-- What is written for a confirm: the terms of its lock, and this time. Its answer has neither an
-- amount nor the end of the lock.
create or replace function rules.make_confirm(
  p_call core.call, p_lock core.redemption, p_distributor_id int, p_now timestamptz)
returns core.grant
language sql immutable
return (p_call, p_lock.redemption_id, p_lock.merchant_id, p_lock.coupon_id, p_distributor_id,
        p_lock.currency, p_lock.discount_minor, p_lock.order_minor, null, p_now, null)::core.grant;
