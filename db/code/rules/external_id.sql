-- The outside form of a key: prefix, underscore, 26 characters of lower-case Crockford Base32 (the
-- TypeID form). 130 bits for 128: the first character holds three bits only.
-- Two digits at a time and written out, because each answer and each event has some: a loop takes four times as long.
-- Shifted by one bit less, ten bits are twice the number of their pair: the place of its two bytes. A plan holds the pairs as a constant.
-- Names nothing of ours: views call this as their reader, who may not look into this schema.
create or replace function rules.external_id(p_prefix text, p_id uuid) returns text
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  a      constant bytea := convert_to(regexp_replace('0123456789abcdefghjkmnpqrstvwxyz', '(.)',
    regexp_replace('0123456789abcdefghjkmnpqrstvwxyz', '(.)', '\\1\1', 'g'), 'g'), 'UTF8');
  v_hex  text := replace(p_id::text, '-', '');
  h      bigint := ('x' || left(v_hex, 16))::bit(64)::bigint;
  l      bigint := ('x' || right(v_hex, 16))::bit(64)::bigint;
begin
  return p_prefix || '_' || convert_from(
    substr(a, (h >> 55 & 510)::int + 1, 2) || substr(a, (h >> 45 & 2046)::int + 1, 2)
    || substr(a, (h >> 35 & 2046)::int + 1, 2) || substr(a, (h >> 25 & 2046)::int + 1, 2)
    || substr(a, (h >> 15 & 2046)::int + 1, 2) || substr(a, (h >> 5 & 2046)::int + 1, 2)
    || substr(a, ((h & 63) * 32 + (l >> 59 & 30))::int + 1, 2) || substr(a, (l >> 49 & 2046)::int + 1, 2)
    || substr(a, (l >> 39 & 2046)::int + 1, 2) || substr(a, (l >> 29 & 2046)::int + 1, 2)
    || substr(a, (l >> 19 & 2046)::int + 1, 2) || substr(a, (l >> 9 & 2046)::int + 1, 2)
    || substr(a, (l << 1 & 2046)::int + 1, 2), 'UTF8');
end
$$;
comment on function rules.external_id(text, uuid) is 'The outside form of a UUID key.';
