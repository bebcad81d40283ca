-- The money of a redemption: its ledger entry, and the event that tells of it.
create or replace function rules.post_redemption(
  p_tenant_id int, p_redemption_id uuid, p_coupon_id uuid, p_distributor_id int,
  p_discount_minor bigint, p_currency text, p_redeemed_at timestamptz)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  perform rules.write_event(
    p_tenant_id, p_redemption_id, 'coupon.redeemed', p_distributor_id, null, p_coupon_id, p_redemption_id, p_redeemed_at);
  insert into core.ledger_entry
    (tenant_id, entry_id, entry_type, redemption_id, distributor_id, amount_minor, currency, occurred_at, recorded_at)
  values
    (p_tenant_id, p_redemption_id, 'REDEMPTION', p_redemption_id, p_distributor_id, p_discount_minor,
     p_currency, p_redeemed_at, clock_timestamp());
end
$$;
comment on function rules.post_redemption(int, uuid, uuid, int, bigint, text, timestamptz) is
  'Ledger entry and event of a completed redemption.';
