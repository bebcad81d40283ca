-- The outside form of a key: prefix, underscore, 26 characters of lower-case Crockford Base32 (the
-- TypeID form). 130 bits for 128: the first character holds three bits only.
-- Written out, because each answer and each event has some: a loop over a bit string takes twice as long.
create or replace function rules.external_id(p_prefix text, p_id uuid) returns text
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  a        constant text := '0123456789abcdefghjkmnpqrstvwxyz';
  v_hex    text := replace(p_id::text, '-', '');
  h        bigint := ('x' || left(v_hex, 16))::bit(64)::bigint;
  l        bigint := ('x' || right(v_hex, 16))::bit(64)::bigint;
begin
  return p_prefix || '_'
    || substr(a, (h >> 61 & 7)::int + 1, 1) || substr(a, (h >> 56 & 31)::int + 1, 1)
    || substr(a, (h >> 51 & 31)::int + 1, 1) || substr(a, (h >> 46 & 31)::int + 1, 1)
    || substr(a, (h >> 41 & 31)::int + 1, 1) || substr(a, (h >> 36 & 31)::int + 1, 1)
    || substr(a, (h >> 31 & 31)::int + 1, 1) || substr(a, (h >> 26 & 31)::int + 1, 1)
    || substr(a, (h >> 21 & 31)::int + 1, 1) || substr(a, (h >> 16 & 31)::int + 1, 1)
    || substr(a, (h >> 11 & 31)::int + 1, 1) || substr(a, (h >> 6 & 31)::int + 1, 1)
    || substr(a, (h >> 1 & 31)::int + 1, 1) || substr(a, ((h & 1) * 16 + (l >> 60 & 15))::int + 1, 1)
    || substr(a, (l >> 55 & 31)::int + 1, 1) || substr(a, (l >> 50 & 31)::int + 1, 1)
    || substr(a, (l >> 45 & 31)::int + 1, 1) || substr(a, (l >> 40 & 31)::int + 1, 1)
    || substr(a, (l >> 35 & 31)::int + 1, 1) || substr(a, (l >> 30 & 31)::int + 1, 1)
    || substr(a, (l >> 25 & 31)::int + 1, 1) || substr(a, (l >> 20 & 31)::int + 1, 1)
    || substr(a, (l >> 15 & 31)::int + 1, 1) || substr(a, (l >> 10 & 31)::int + 1, 1)
    || substr(a, (l >> 5 & 31)::int + 1, 1) || substr(a, (l & 31)::int + 1, 1);
end
$$;
comment on function rules.external_id(text, uuid) is 'The outside form of a UUID key.';
