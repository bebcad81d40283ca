-- What a lock of the coupon would answer now, decided by the same functions. Writes nothing and
-- locks no row. refusal is a fault of the request itself, which the caller of this returns, such as
-- an amount with too many decimals. p_is_lapsed: the coupon's lock has expired.
create or replace function rules.compute_quote(
  p_call core.call, p_is_lapsed boolean, p_now timestamptz, out refusal core.answer, out quote text)
returns record
language plpgsql stable as $$
declare
  v_ordinals  int[] := array[p_call.ordinal];
  v_decision  record;
begin
  select d.is_granted, d.refusal, d.discount_minor, d.currency, d.decimals into v_decision
  from rules.decide_redemptions(
    array[p_call], v_ordinals, v_ordinals, case when p_is_lapsed then v_ordinals else '{}' end,
    p_now) d;
  if (v_decision.refusal).http_status in (400, 404) then
    refusal := v_decision.refusal;
    return;
  end if;
  quote := format(
    '{"redeemable":%s,"discount_amount":%s,"currency":"%s","code":%s,"message":%s}',
    v_decision.is_granted::text,
    coalesce(rules.format_amount(
      v_decision.discount_minor, v_decision.decimals, p_call.amount_unit)::text, 'null'),
    v_decision.currency, coalesce(to_json((v_decision.refusal).code)::text, 'null'),
    coalesce(((v_decision.refusal).body::json -> 'message')::text, 'null'));
end
$$;
