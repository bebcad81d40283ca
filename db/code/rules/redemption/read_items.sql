-- Reads the items of an order. Returns the path of the first invalid amount. Of the items that
-- match a template with skus, it returns the number, how many have no amount, and the total in
-- minor units, at least 0: a returned line is negative. The total is numeric, because the sum of
-- many items can exceed a bigint. Without items, the result is null and the function does not run.
create or replace function rules.read_items(
  p_items jsonb, p_skus text[], p_decimals int, p_amount_unit text)
returns core.ordered
language plpgsql immutable strict as $$
declare
  v_ordered  core.ordered;
begin
  select min(i.place) filter (where i.amount is not null and i.minor is null),
         count(*) filter (where i.is_matching),
         count(*) filter (where i.is_matching and i.amount is null),
         greatest(sum(i.minor::numeric) filter (where i.is_matching), 0)
    into v_ordered
  from (
    select e.ordinality - 1 as place, e.value ->> 'amount' as amount,
           e.value ->> 'sku' = any (p_skus) as is_matching,
           sign((e.value ->> 'amount')::numeric) * rules.parse_amount(
             abs((e.value ->> 'amount')::numeric), p_decimals, p_amount_unit) as minor
    from jsonb_array_elements(p_items) with ordinality e) i;
  v_ordered.wrong_item := 'redemption_context.items.' || v_ordered.wrong_item || '.amount';
  return v_ordered;
end
$$;
