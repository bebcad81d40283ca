-- The answer to a lock or redeem that is granted. Only a lock has p_lock_expires_at.
create or replace function rules.render_grant(
  p_call core.call, p_redemption_id uuid, p_coupon_id uuid, p_discount_minor bigint,
  p_currency text, p_decimals int, p_lock_expires_at timestamptz)
returns core.answer
language sql stable
return rules.succeed(
  '{"ok":true,"redemption":"' || rules.render_id('red', p_redemption_id) || '","coupon_id":"'
  || rules.render_id('cpn', p_coupon_id) || '","discount_amount":'
  || rules.format_amount(p_discount_minor, p_decimals, p_call.amount_unit)
  || ',"currency":"' || p_currency || '"'
  || coalesce(',"lock_expires_at":"' || rules.format_time(p_lock_expires_at) || '"', '') || '}');
