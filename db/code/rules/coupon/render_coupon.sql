-- A coupon as query returns it: JSON, without the code. Its redemption is shown to callers that may
-- act for the merchant of the redemption: in Variant A to all.
create or replace function rules.render_coupon(
  p_call core.call, p_coupon core.coupon, p_batch core.batch, p_last core.redemption,
  p_status text)
returns text
language plpgsql stable as $$
begin
  return format(
    '{"coupon_id":"%s","status":"%s","template_id":"%s","batch_id":"%s","created_at":"%s",'
    '"valid_from":"%s","valid_to":"%s"%s}',
    rules.format_id('cpn', p_coupon.coupon_id), p_status,
    (select t.external_id
     from core.template t
     where t.tenant_id = p_batch.tenant_id and t.template_id = p_batch.template_id),
    p_batch.external_id, rules.format_time(p_coupon.created_at),
    rules.format_time(p_coupon.valid_from), rules.format_time(p_coupon.valid_to),
    (select format(
       ',"redemption":{"redemption":"%s","merchant_id":"%s","status":"%s","started_at":"%s",'
       '"discount_amount":%s,"currency":"%s"}',
       rules.format_id('red', p_last.redemption_id), m.external_id, p_last.status,
       rules.format_time(p_last.started_at),
       rules.format_amount(p_last.discount_minor, u.decimals, p_call.amount_unit), p_last.currency)
     from core.merchant m
     join core.currency u on u.currency = p_last.currency
     where m.tenant_id = p_last.tenant_id
       and m.merchant_id = p_last.merchant_id
       and rules.may_act_for(p_call, m.merchant_id, m.party_id)));
end
$$;
