-- The outside form of a key: prefix, underscore, 26 characters of lower-case Crockford Base32 (the
-- TypeID form). 130 bits for 128: the first character holds three bits only.
-- Two digits at a time: eight bits, then three times forty. Written out whole it takes a sixth less where there are many, but one
-- alone, as in each answer, twice as long: PostgreSQL sets up each call of a function that an expression has. Shifted by one
-- bit less, ten bits are twice the number of their pair: the place of its two bytes. A plan holds the pairs as a constant.
-- Names nothing of ours: views call this as their reader, who may not look into this schema.
create or replace function rules.format_id(p_prefix text, p_id uuid) returns text
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  a       constant bytea := convert_to(regexp_replace('0123456789abcdefghjkmnpqrstvwxyz', '(.)',
    regexp_replace('0123456789abcdefghjkmnpqrstvwxyz', '(.)', E'\\\\1\\1', 'g'), 'g'), 'UTF8');
  v_bits  bit(128) := ('x' || replace(p_id::text, '-', ''))::bit(128);
  v_part  bigint := substring(v_bits, 1, 8)::bigint;
  v_text  bytea := substr(a, (v_part << 1)::int + 1, 2);
begin
  for i in 0 .. 2 loop
    v_part := substring(v_bits, i * 40 + 9, 40)::bigint;
    v_text := v_text
      || substr(a, (v_part >> 29 & 2046)::int + 1, 2) || substr(a, (v_part >> 19 & 2046)::int + 1, 2)
      || substr(a, (v_part >> 9 & 2046)::int + 1, 2) || substr(a, (v_part << 1 & 2046)::int + 1, 2);
  end loop;
  return p_prefix || '_' || convert_from(v_text, 'UTF8');
end
$$;
comment on function rules.format_id(text, uuid) is 'The outside form of a UUID key.';
