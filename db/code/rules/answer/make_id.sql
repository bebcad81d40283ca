-- A UUIDv7 (RFC 9562): the time in milliseconds, then random bits, so new rows are adjacent in an
-- index. It does not call uuidv7(), which only PostgreSQL 18 and newer have.
create or replace function rules.make_id() returns uuid
language sql volatile parallel safe
begin atomic
  select encode(
    set_bit(
      set_bit(
        overlay(
          uuid_send(gen_random_uuid())
          placing substring(int8send((date_part('epoch', clock_timestamp()) * 1000)::bigint) from 3)
          from 1 for 6),
        52, 1),
      53, 1),
    'hex')::uuid;
end;
