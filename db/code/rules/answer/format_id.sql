-- The external form of a key (a TypeID): prefix, underscore, 26 characters of lower-case Crockford
-- Base32. They hold 130 bits for the 128 of a UUID, so the first character holds only three.
--
-- Formats two characters (10 bits) at a time: first the leading 8 bits as one pair, then three
-- blocks of 40 bits as four pairs each. The constant `a` holds all 1,024 pairs, two bytes each, so
-- the offset of a pair is twice its number. That is why each shift is one bit less than the place
-- of the pair. The plan keeps `a` as a constant.
--
-- The loop is on purpose. Unrolled, many IDs take a sixth less time, but a single one, as in each
-- answer, takes twice as long: PostgreSQL sets up every function call of an expression.
--
-- Calls no function of ours: views call this with the rights of their reader, who may not use this
-- schema.
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
      || substr(a, (v_part >> 29 & 2046)::int + 1, 2)
      || substr(a, (v_part >> 19 & 2046)::int + 1, 2)
      || substr(a, (v_part >> 9 & 2046)::int + 1, 2)
      || substr(a, (v_part << 1 & 2046)::int + 1, 2);
  end loop;
  return p_prefix || '_' || convert_from(v_text, 'UTF8');
end
$$;
