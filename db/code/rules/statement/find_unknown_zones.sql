-- Returns the time zones of a list that this server does not know. After an upgrade or a restore,
-- its time zone files may lack a name that they had before. It tests all names at once, and one by
-- one only if that fails: each single test costs a subtransaction, and an unknown name also costs a
-- search through the files.
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
