-- The key of an external ID. Null if the text is not one; callers treat that like an unknown ID.
create or replace function rules.parse_id(p_prefix text, p_external_id text) returns uuid
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  c_alphabet  constant text := '0123456789abcdefghjkmnpqrstvwxyz';
  v_text      text := substr(p_external_id, length(p_prefix) + 2);
  v_bits      varbit := B'';
  v_hex       text := '';
begin
  if p_external_id !~ ('^' || p_prefix || '_[0-7][0-9a-hjkmnp-tv-z]{25}$') then
    return null;
  end if;
  -- equivalent mutant (literal 26): nothing reads the bits after the 130th
  for i in 1 .. 26 loop
    v_bits := v_bits || (strpos(c_alphabet, substr(v_text, i, 1)) - 1)::bit(5);
  end loop;
  for i in 0 .. 31 loop
    v_hex := v_hex || to_hex(substring(v_bits from 4 * i + 3 for 4)::bit(4)::int);
  end loop;
  return v_hex::uuid;
end
$$;
