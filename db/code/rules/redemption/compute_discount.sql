-- Computes a discount. All amounts are in minor units. A discount exceeds neither its base nor the
-- order. p_base is the order or, if the template has skus, the total of the matching items.
create or replace function rules.compute_discount(
  p_template core.template, p_base numeric, p_order_minor bigint)
returns bigint
language sql immutable
return least(
  case p_template.discount_type
    when 'fixed' then p_template.discount_minor
    -- * 0.01 and not / 100: a quotient of large numbers has too few decimals
    else round(p_base * p_template.discount_percent * 0.01)
  end,
  p_template.max_discount_minor, p_base, p_order_minor);
