-- Claims the request_id and the idempotency-key of a call until this transaction ends, by the keys
-- of their advisory locks. They are equal if the call has no idempotency-key. Returns false if
-- another transaction holds one of them, and this call may not wait or has waited until the
-- timeout. A call that waits locks both in sorted order, so two calls with swapped names cannot
-- deadlock.
create or replace function rules.claim_names(p_id bigint, p_key bigint, p_may_wait boolean)
returns boolean
language plpgsql volatile as $$
begin
  if not p_may_wait then
    return pg_try_advisory_xact_lock(p_id)
      -- equivalent mutant (operand p_key = p_id): a session gets its own advisory lock again
      and (p_key = p_id or pg_try_advisory_xact_lock(p_key));
  end if;
  begin
    perform pg_advisory_xact_lock(least(p_id, p_key));
    perform pg_advisory_xact_lock(greatest(p_id, p_key));
    return true;
  exception when lock_not_available then
    return false;
  end;
end
$$;
