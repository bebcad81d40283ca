-- Suspends a batch and, if p_recalled_by is not null, recalls it. The caller holds the batch's row
-- and has let the redemptions that were running end (rules.hold_redemptions). The commit notifies
-- the workers of a recall, which void the coupons.
create or replace function rules.suspend_batch(
  p_batch core.batch, p_recalled_by int, p_reason text, p_details jsonb default '{}')
returns void
language plpgsql volatile as $$
declare
  v_now  timestamptz := clock_timestamp();
begin
  if p_recalled_by is null then
    update core.batch b
    set suspended_at = v_now
    where b.tenant_id = p_batch.tenant_id and b.batch_id = p_batch.batch_id;
  else
    update core.batch b
    set suspended_at = coalesce(b.suspended_at, v_now), recalled_at = v_now,
        recall_caller_id = p_recalled_by, recall_reason = p_reason,
        -- ends the minting
        mint_holder = null, mint_worker = null, mint_lease_until = null
    where b.tenant_id = p_batch.tenant_id and b.batch_id = p_batch.batch_id;
    perform pg_notify('coupon_batch', '');
  end if;
  perform rules.write_audit(
    p_batch.tenant_id,
    case when p_recalled_by is null then 'suspend_batch' else 'recall_batch' end,
    p_batch.external_id, p_reason,
    p_details || jsonb_build_object('batch', jsonb_build_object(
      'old', case when p_batch.suspended_at is null then 'usable' else 'suspended' end,
      'new', case when p_recalled_by is null then 'suspended' else 'recalled' end)));
end
$$;
