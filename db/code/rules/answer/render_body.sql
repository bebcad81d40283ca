-- The body of an answer. `serve` writes that of a grant itself; this is the same text, for other
-- readers.
create or replace function rules.render_body(p_answer core.answer) returns text
language sql stable
return coalesce(p_answer.body, rules.render_grant(
  p_answer.redemption_id, p_answer.coupon_id, p_answer.discount_amount, p_answer.currency,
  rules.format_time(p_answer.lock_expires_at)));
