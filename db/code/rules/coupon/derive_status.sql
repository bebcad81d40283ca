-- The effective status of a coupon at p_now, even if no job has written it yet: an expired lock is
-- gone, and a coupon past valid_to is EXPIRED. A live lock continues after valid_to, so that it can
-- still be confirmed.
create or replace function rules.derive_status(
  p_status text, p_valid_to timestamptz, p_lock_expires_at timestamptz, p_is_released boolean,
  p_variant text, p_now timestamptz)
returns text
language sql immutable parallel safe
return case
  when p_status in ('VOIDED', 'REDEEMED', 'EXPIRED') then p_status
  when p_status = 'LOCKED' and p_lock_expires_at > p_now then 'LOCKED'
  when p_valid_to <= p_now then 'EXPIRED'
  when not p_is_released and p_variant = 'B' then 'CREATED'
  else 'ISSUED'
end;
