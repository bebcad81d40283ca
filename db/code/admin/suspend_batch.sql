create or replace function admin.suspend_batch(p_batch text, p_reason text) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_batch   core.batch := rules.hold_batch_for_patch(p_batch);
begin
  if v_batch.suspended_at is null then
    perform rules.hold_redemptions(v_batch.tenant_id, true);
    perform rules.suspend_batch(v_batch, null, v_reason);
  end if;
  return (rules.find_batch(p_batch)).suspended_at;
end
$$;
comment on function admin.suspend_batch(text, text) is
  'Refuses locks and redeems of the coupons of a batch from the commit on. Locked coupons can '
  'still be confirmed. Returns when it was suspended; a second call changes nothing.';
