-- What an order lacks to compute its discount.
create or replace function rules.find_missing(
  p_template core.template, p_order_minor bigint, p_items jsonb, p_unpriced int)
returns text
language sql immutable
return case
  when p_order_minor is null
       and (p_template.discount_type = 'percent' or p_template.min_order_minor is not null)
    then 'order_amount'
  when p_template.skus is not null and p_items is null then 'redemption_context.items'
  when p_template.skus is not null and p_unpriced > 0 then 'the amount of each matching item'
end;
