-- The key of an external ID. Null if the text is not one; callers treat that like an unknown ID.
-- An ID has one spelling, so it can be repeated as it was given.
create or replace function rules.parse_id(p_prefix text, p_external_id text) returns uuid
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  c_alphabet  constant text := '0123456789abcdefghjkmnpqrstvwxyz';
  v_text      text := substr(p_external_id, length(p_prefix) + 2);
  v_part      bigint := 0;
  v_bytes     bytea := '';
begin
  if p_external_id !~ ('^' || p_prefix || '_[0-7][0-9a-hjkmnp-tv-z]{25}$') then
    return null;
  end if;
  -- two characters hold the first byte, and then eight hold five bytes, three times
  for i in 1 .. 26 loop
    v_part := v_part << 5 | strpos(c_alphabet, substr(v_text, i, 1)) - 1;
    if i % 8 = 2 then
      v_bytes := v_bytes || substring(int8send(v_part) from case i when 2 then 8 else 4 end);
      v_part := 0;
    end if;
  end loop;
  return encode(v_bytes, 'hex')::uuid;
end
$$;
