-- Locks the rows of the coupons that calls of a group name, until the end of the transaction. If
-- the call may wait, this waits for its row. Otherwise it skips rows that another session holds.
-- held lists the ordinals of the calls that may go on: of several calls for one coupon, only the
-- first. is_locked says whether one of the coupons is LOCKED.
--
-- This is the first row lock: only the advisory locks on the request come before it. Every change
-- of a coupon or its redemptions holds this row. Read the coupon and the clock afterwards, never
-- before: both may be stale after a wait.
create or replace function rules.hold_group(
  p_calls core.call[], p_ordinals int[], out held int[], out is_locked boolean)
language plpgsql volatile as $$
declare
  v_call  core.call;
  v_hash  uuid;
begin
  if cardinality(p_ordinals) = 1 then
    v_call := p_calls[p_ordinals[1]];
    v_hash := (v_call.args ->> 'coupon')::uuid;
    if v_call.may_wait then
      select k.status = 'LOCKED' into is_locked
      from core.coupon k
      where k.tenant_id = v_call.tenant_id and k.lookup_hash = v_hash
      for no key update;
    else
      select k.status = 'LOCKED' into is_locked
      from core.coupon k
      where k.tenant_id = v_call.tenant_id and k.lookup_hash = v_hash
      for no key update skip locked;
    end if;
    held := case when found then p_ordinals end;
    return;
  end if;
  select array_agg(h.ordinal) filter (where h.nth = 1), bool_or(h.status = 'LOCKED')
    into held, is_locked
  from (
    select r.ordinal, r.status,
           row_number() over (partition by r.coupon_id order by r.ordinal) as nth
    from (
      select c.ordinal, k.coupon_id, k.status
      from unnest(p_calls) c
      join core.coupon k
        on k.tenant_id = c.tenant_id and k.lookup_hash = (c.args ->> 'coupon')::uuid
      where c.ordinal = any (p_ordinals)
      for no key update of k skip locked) r) h;
end
$$;
