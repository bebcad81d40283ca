-- Why a lock cannot be confirmed or cancelled; null if the lock is live. An expired lock counts as
-- gone, even if it is not yet marked LAPSED.
create or replace function rules.check_lock(
  p_call core.call, p_lock core.redemption, p_now timestamptz)
returns core.answer
language plpgsql stable as $$
begin
  return case
    when p_lock.redemption_id is null then rules.refuse(p_call, 'LOCK_NOT_FOUND')
    when p_lock.status = 'LAPSED' or (p_lock.status = 'LOCKED' and p_lock.lock_expires_at <= p_now)
      then rules.refuse_at(p_call, 'LOCK_EXPIRED', 'lock_expires_at', p_lock.lock_expires_at)
    when p_lock.status = 'CANCELLED' then rules.refuse(p_call, 'LOCK_CANCELLED')
    when p_lock.status in ('REDEEMED', 'REVERSED')
      then rules.refuse(p_call, 'LOCK_CONFIRMED', format(
        '{"redemption":"%s"}', rules.format_id('red', p_lock.redemption_id))::json)
  end;
end
$$;
