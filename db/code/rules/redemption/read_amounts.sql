-- Reads the amounts of a lock or redeem in minor units of the coupon's currency. Does not read
-- amounts in another currency: the call will be refused with CURRENCY_MISMATCH.
create or replace function rules.read_amounts(
  p_call core.call, p_currency text, p_decimals int,
  out refusal core.answer, out order_minor bigint)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
  c_message  constant text :=
    'must be at least 0, below 10^12, and have no more decimals than the currency';
  v_item     record;
begin
  if p_call.args ->> 'currency' <> p_currency then
    return;
  end if;
  order_minor := rules.parse_amount(
    (p_call.args ->> 'order_amount')::numeric, p_decimals, p_call.amount_unit);
  if order_minor is null and p_call.args ->> 'order_amount' is not null then
    refusal := rules.refuse_field(p_call, 'order_amount', c_message);
    return;
  end if;
  if p_call.args -> 'items' is null then
    return;
  end if;
  for v_item in
    select i.value ->> 'amount' as amount, i.ordinality - 1 as position
    from jsonb_array_elements(p_call.args -> 'items') with ordinality i
  loop
    if v_item.amount is not null
       and rules.parse_amount(v_item.amount::numeric, p_decimals, p_call.amount_unit) is null
    then
      refusal := rules.refuse_field(
        p_call, format('redemption_context.items.%s.amount', v_item.position), c_message);
      return;
    end if;
  end loop;
end
$$;
comment on function rules.read_amounts(core.call, text, int) is
  'The order amount of a call in minor units, or a 400.';
