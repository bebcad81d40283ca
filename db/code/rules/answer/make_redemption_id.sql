-- The same as rules.make_id, with a given time and the random bytes of `serve`: PostgreSQL takes
-- 14,000 instructions to draw its own.
create or replace function rules.make_redemption_id(p_at timestamptz, p_random bytea) returns uuid
language sql immutable parallel safe
begin atomic
  select encode(
    substring(int8send((date_part('epoch', p_at) * 1000)::bigint) from 3) || p_random, 'hex')::uuid;
end;
