-- The answer to a lock or redeem that is granted. Only a lock has lock_expires_at.
create or replace function rules.render_grant(p_grant core.grant) returns core.answer
language sql stable
return rules.succeed(
  '{"ok":true,"redemption":"' || rules.render_id('red', p_grant.redemption_id)
  || '","coupon_id":"' || rules.render_id('cpn', p_grant.coupon_id) || '","discount_amount":'
  || rules.format_amount(p_grant.discount_minor, p_grant.decimals, (p_grant.call).amount_unit)
  || ',"currency":"' || p_grant.currency || '"'
  || coalesce(',"lock_expires_at":"' || rules.format_time(p_grant.lock_expires_at) || '"', '')
  || '}');
