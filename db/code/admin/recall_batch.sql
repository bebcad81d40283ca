create or replace function admin.recall_batch(p_batch text, p_reason text) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_batch   core.batch := rules.hold_batch_for_patch(p_batch);
begin
  if v_batch.recalled_at is null then
    perform rules.hold_redemptions(v_batch.tenant_id, true);
    perform rules.suspend_batch(v_batch, 0, v_reason);
  end if;
  return (rules.find_batch(p_batch)).recalled_at;
end
$$;
comment on function admin.recall_batch(text, text) is
  'Suspends a batch for good and lets the worker void its unused coupons, released or not; '
  'report.batch shows the progress. A locked coupon is voided when its lock ends without a '
  'confirm. Returns when it was recalled; a second call changes nothing.';
