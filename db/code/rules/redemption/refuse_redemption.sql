-- The refusal of a lock or redeem, with what the error table lists as its details.
create or replace function rules.refuse_redemption(
  p_call core.call, p_code text, p_coupon core.coupon, p_wrong_amount text, p_missing text)
returns core.answer
language plpgsql stable as $$
begin
  case p_code
    when 'INVALID_REQUEST' then
      return rules.refuse_field(p_call, p_wrong_amount,
        'must be at least 0, below 10^12, and have no more decimals than the currency');
    when 'DISCOUNT_NOT_COMPUTABLE' then
      return rules.refuse(p_call, p_code, format('{"missing":"%s"}', p_missing)::json);
    when 'COUPON_LOCKED' then
      return rules.refuse(p_call, p_code, (
        select format('{"lock_expires_at":"%s"}', rules.format_time(r.lock_expires_at))::json
        from core.redemption r
        where r.coupon_id = p_coupon.coupon_id
          and r.tenant_id = p_call.tenant_id
          and r.status = 'LOCKED'));
    else
      return rules.refuse(p_call, p_code);
  end case;
end
$$;
comment on function rules.refuse_redemption(core.call, text, core.coupon, text, text) is
  'The refusal of a lock or redeem, with its details.';
