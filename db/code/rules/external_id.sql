-- The outside form of a key: prefix, underscore, 26 characters of lower-case Crockford Base32 (the
-- TypeID form). 130 bits for 128: the first character holds three bits only.
create or replace function rules.external_id(p_prefix text, p_id uuid) returns text
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  c_alphabet  constant text := '0123456789abcdefghjkmnpqrstvwxyz';
  v_bits      bit(130) := B'00' || ('x' || replace(p_id::text, '-', ''))::bit(128);
  v_text      text := '';
begin
  for i in 0 .. 25 loop
    v_text := v_text || substr(c_alphabet, substring(v_bits from 5 * i + 1 for 5)::bit(5)::int + 1, 1);
  end loop;
  return p_prefix || '_' || v_text;
end
$$;
comment on function rules.external_id(text, uuid) is 'The outside form of a UUID key.';
