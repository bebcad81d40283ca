-- The time zones in a list that this server does not know: after an upgrade or a restore, its
-- timezone files may lack a name that they had. Asks for all at once, and one by one only if that
-- fails: each of those questions costs a subtransaction, and an unknown name a search in the files.
create or replace function rules.find_unknown_zones(p_time_zones text[]) returns text[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  v_zone     text;
  v_unknown  text[] := '{}';
begin
  begin
    perform count(now() at time zone z) from unnest(p_time_zones) z;
    return v_unknown;
  exception when invalid_parameter_value then
    null;
  end;
  foreach v_zone in array p_time_zones loop
    begin
      perform now() at time zone v_zone;
    exception when invalid_parameter_value then
      v_unknown := v_unknown || v_zone;
    end;
  end loop;
  return v_unknown;
end
$$;
