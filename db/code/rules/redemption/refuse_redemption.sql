-- The refusal of a lock or redeem, with what the error table lists as its details. If the cancel of
-- the lock came first, that is the reason, unless p_code is before it in the error table.
create or replace function rules.refuse_redemption(
  p_call core.call, p_code text, p_coupon core.coupon, p_template core.template,
  p_ordered core.ordered, p_order_minor bigint)
returns core.answer
language plpgsql stable as $$
begin
  if p_call.operation <> 'query'
    and p_code not in ('INVALID_REQUEST', 'MERCHANT_NOT_IN_SCOPE')
    and rules.is_lock_cancelled(p_call, p_coupon.coupon_id)
  then
    return rules.refuse(p_call, 'LOCK_CANCELLED');
  end if;
  case p_code
    when 'COUPON_VOIDED' then
      return rules.refuse_at(p_call, p_code, 'voided_at', (
        select v.voided_at
        from core.voiding v
        where v.coupon_id = p_coupon.coupon_id and v.tenant_id = p_call.tenant_id));
    when 'COUPON_REDEEMED' then
      return rules.refuse_at(p_call, p_code, 'redeemed_at', (
        select max(r.redeemed_at)
        from core.redemption r
        where r.coupon_id = p_coupon.coupon_id and r.tenant_id = p_call.tenant_id));
    when 'COUPON_EXPIRED' then
      return rules.refuse_at(p_call, p_code, 'valid_to', p_coupon.valid_to);
    when 'COUPON_LOCKED' then
      return rules.refuse_at(p_call, p_code, 'lock_expires_at', (
        select r.lock_expires_at
        from core.redemption r
        where r.coupon_id = p_coupon.coupon_id
          and r.tenant_id = p_call.tenant_id
          and r.status = 'LOCKED'));
    when 'COUPON_NOT_YET_VALID' then
      return rules.refuse_at(p_call, p_code, 'valid_from', p_coupon.valid_from);
    when 'CURRENCY_MISMATCH' then
      return rules.refuse(p_call, p_code, format(
        '{"currency":"%s"}', p_template.currency)::json);
    when 'ORDER_BELOW_MINIMUM' then
      return rules.refuse(p_call, p_code, format(
        '{"min_order_amount":%s,"currency":"%s"}',
        rules.format_amount(p_template.min_order_minor, p_template.decimals, p_call.amount_unit),
        p_template.currency)::json);
    when 'INVALID_REQUEST' then
      return rules.refuse_field(
        p_call,
        case
          when p_order_minor is null and p_call.args ->> 'order_amount' is not null
            then 'order_amount'
          else p_ordered.wrong_item
        end,
        rules.describe_decimals(p_template.currency, p_call.amount_unit));
    when 'DISCOUNT_NOT_COMPUTABLE' then
      return rules.refuse(p_call, p_code, format('{"missing":"%s"}', case
        when p_order_minor is null
             and (p_template.discount_type = 'percent' or p_template.min_order_minor is not null)
          then 'order_amount'
        when p_ordered is null then 'redemption_context.items'
        else 'the amount of each matching item'
      end)::json);
    else
      return rules.refuse(p_call, p_code);
  end case;
end
$$;
