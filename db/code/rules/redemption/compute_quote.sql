-- What a lock of the coupon would answer now, decided by the same function. Writes nothing and
-- locks no row. refusal is a fault of the request itself, which the caller of this returns, such as
-- an amount with too many decimals. p_is_lapsed: the lock of the coupon has expired.
create or replace function rules.compute_quote(
  p_call core.call, p_merchant_id int, p_coupon core.coupon, p_batch core.batch,
  p_is_lapsed boolean, p_now timestamptz, out refusal core.answer, out quote text)
language plpgsql stable as $$
declare
  v_coupon    core.coupon := p_coupon;
  v_template  core.template;
  v_is        record;
begin
  -- the lock would end it
  if p_is_lapsed then
    v_coupon.status := 'ISSUED';
  end if;
  select t.* into v_template
  from core.template t
  where t.tenant_id = p_batch.tenant_id and t.template_id = p_batch.template_id;
  v_is := rules.decide_redemption(
    p_call, p_merchant_id, v_coupon, p_batch, v_template, p_now);
  if (v_is.refusal).http_status in (400, 404) then
    refusal := v_is.refusal;
    return;
  end if;
  quote := format(
    '{"redeemable":%s,"discount_amount":%s,"currency":"%s","code":%s,"message":%s}',
    ((v_is.refusal).code is null)::text,
    coalesce(rules.format_amount(
      v_is.discount_minor, v_template.decimals, p_call.amount_unit)::text, 'null'),
    v_template.currency, coalesce(to_json((v_is.refusal).code)::text, 'null'),
    coalesce(((v_is.refusal).body::json -> 'message')::text, 'null'));
end
$$;
