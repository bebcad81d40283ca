-- Locks the rows of a group's coupons until the end of the transaction and returns the lookup
-- hashes of those it locked. If the call may wait, this waits for its row. Otherwise it skips rows
-- that another session holds.
--
-- First of the row locks: only the advisory locks on the request come before it. Every change of a
-- coupon or its redemptions holds this row. Read the coupon and the clock afterwards, never before:
-- both may be stale after a wait.
create or replace function rules.hold_coupons(p_calls core.call[]) returns uuid[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if p_calls[1].may_wait then
    return array(
      select k.lookup_hash
      from unnest(p_calls) c
      join core.coupon k
        on k.tenant_id = c.tenant_id and k.lookup_hash = (c.args ->> 'coupon')::uuid
      for no key update of k);
  end if;
  return array(
    select k.lookup_hash
    from unnest(p_calls) c
    join core.coupon k
      on k.tenant_id = c.tenant_id and k.lookup_hash = (c.args ->> 'coupon')::uuid
    for no key update of k skip locked);
end
$$;
comment on function rules.hold_coupons(core.call[]) is
  'Locks the rows of a group''s coupons, by the lookup hashes of their codes.';
