-- The inverse of rules.format_amount. Null if the amount is negative, at least 10^12, or has more
-- decimals than the currency (or unit) allows. NaN sorts above every number, so it is null too.
create or replace function rules.parse_amount(p_amount numeric, p_decimals int, p_amount_unit text)
returns bigint
language sql immutable parallel safe
return case
  when p_amount >= 0 and p_amount < 1e12
       and min_scale(p_amount) <= case p_amount_unit when 'minor' then 0 else p_decimals end
    then (p_amount * case p_amount_unit
      when 'minor' then 1
      else ('{1,10,100,1000,10000}'::numeric[])[p_decimals + 1]
    end)::bigint
end;
