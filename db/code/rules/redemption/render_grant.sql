-- The answer to a lock or redeem that is granted, as `serve` writes it. A redeem has no
-- p_lock_expires_at.
create or replace function rules.render_grant(
  p_redemption_id uuid, p_coupon_id uuid, p_discount_amount numeric, p_currency text,
  p_lock_expires_at text)
returns text
language sql stable parallel safe
return '{"ok":true,"redemption":"' || rules.format_id('red', p_redemption_id)
  || '","coupon_id":"' || rules.format_id('cpn', p_coupon_id)
  || '","discount_amount":' || p_discount_amount || ',"currency":"' || p_currency || '"'
  || coalesce(',"lock_expires_at":"' || p_lock_expires_at || '"', '') || '}';
