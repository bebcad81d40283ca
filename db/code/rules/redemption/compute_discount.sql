-- Computes the discount, or returns the error code that says why there is none. A pure function;
-- all amounts are in minor units. A discount never exceeds its base: the order or, if the template
-- has skus, the total of the matching items.
create or replace function rules.compute_discount(
  p_template core.template, p_order_minor bigint, p_items jsonb, p_decimals int, p_amount_unit text,
  out discount_minor bigint, out code text, out missing text)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
  v_eligible  numeric := p_order_minor;  -- the sum of many items can exceed a bigint
  v_matching  int;
  v_unpriced  int;
begin
  missing := case
    when p_order_minor is null and p_template.discount_type = 'percent' then 'order_amount'
    when p_order_minor is null and p_template.min_order_minor is not null then 'order_amount'
    when p_items is null and p_template.skus is not null then 'redemption_context.items'
  end;
  if missing is null and p_template.skus is not null then
    select count(*), count(*) filter (where i -> 'amount' is null),
           sum(rules.parse_amount((i ->> 'amount')::numeric, p_decimals, p_amount_unit)::numeric)
      into v_matching, v_unpriced, v_eligible
    from jsonb_array_elements(p_items) i
    where i ->> 'sku' = any (p_template.skus);
    missing := case when v_unpriced > 0 then 'the amount of each matching item' end;
  end if;
  code := case
    when missing is not null then 'DISCOUNT_NOT_COMPUTABLE'
    when p_order_minor < p_template.min_order_minor then 'ORDER_BELOW_MINIMUM'
    when v_matching = 0 then 'NO_ELIGIBLE_ITEMS'
  end;
  if code is null then
    discount_minor := least(
      case p_template.discount_type
        when 'fixed' then p_template.discount_minor
        -- * 0.01 and not / 100: a quotient of large numbers has too few decimals
        else round(v_eligible * p_template.discount_percent * 0.01)
      end,
      p_template.max_discount_minor, v_eligible, p_order_minor);
  end if;
end
$$;
comment on function rules.compute_discount(core.template, bigint, jsonb, int, text) is
  'The discount of an order under a template, in minor units.';
