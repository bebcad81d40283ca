-- Writes minor units in the tenant's amount unit. In major units of a currency with two decimals,
-- 1990 becomes 19.90. The result is exact, because a numeric product keeps all decimals of its
-- factors.
create or replace function rules.format_amount(p_minor bigint, p_decimals int, p_amount_unit text)
returns numeric
language sql immutable parallel safe
return case p_amount_unit
  when 'minor' then p_minor::numeric
  else p_minor::numeric * ('{1,0.1,0.01,0.001,0.0001}'::numeric[])[p_decimals + 1]
end;
