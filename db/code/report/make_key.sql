-- Keys of redemptions and coupons are UUIDv7, which begin with the time in milliseconds. So a range
-- of time is a range of keys, and needs no other index.
create or replace function report.make_key(p_at timestamptz) returns uuid
language sql immutable parallel safe
return encode(
  substring(int8send((extract(epoch from p_at) * 1000)::bigint) from 3)
  || '\x00000000000000000000'::bytea, 'hex')::uuid;
comment on function report.make_key(timestamptz) is
  'The lowest key that can be made at this time, for ranges of redemption_key and coupon_key.';
