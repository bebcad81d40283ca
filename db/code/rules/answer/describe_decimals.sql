-- Says how many decimals an amount may have. Null if the currency is unknown.
create or replace function rules.describe_decimals(p_currency text, p_amount_unit text) returns text
language sql stable
return (
  select case
           when p_amount_unit = 'minor'
             then format('must be an integer: amounts are in minor units of %s', c.currency)
           when c.decimals = 0 then format('must be an integer: %s has no decimals', c.currency)
           else format('must have at most %s decimals, as %s has', c.decimals, c.currency)
         end
  from core.currency c
  where c.currency = p_currency);
