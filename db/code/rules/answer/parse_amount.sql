-- The inverse of rules.format_amount. Null if the amount is negative, at least 10^12, or has more
-- decimals than the currency (or unit) allows. NaN sorts above every number, so it is null too.
create or replace function rules.parse_amount(p_amount numeric, p_decimals int, p_amount_unit text)
returns bigint
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  v_minor  numeric;
begin
  if not (p_amount >= 0 and p_amount < 1e12) then
    return null;
  end if;
  v_minor := case p_amount_unit
    when 'minor' then p_amount
    else p_amount * ('{1,10,100,1000,10000}'::numeric[])[p_decimals + 1]
  end;
  return case when v_minor = trunc(v_minor) then v_minor::bigint end;
end
$$;
comment on function rules.parse_amount(numeric, int, text) is
  'An amount of a request in minor units; null if it is not valid.';
