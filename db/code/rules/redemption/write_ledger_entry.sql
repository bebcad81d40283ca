-- Writes the ledger entry of a redemption or, if p_reversal_id is given, of its reversal. The entry
-- is also the event. It gets the ID of the redemption or reversal, which the caller has already
-- written.
create or replace function rules.write_ledger_entry(
  p_redemption core.redemption, p_reversal_id uuid, p_distributor_id int, p_occurred_at timestamptz)
returns void
language plpgsql volatile as $$
declare
  v_is_reversal  boolean := p_reversal_id is not null;
begin
  insert into core.ledger_entry
    (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency,
     occurred_at, recorded_at)
  values
    (p_redemption.tenant_id, coalesce(p_reversal_id, p_redemption.redemption_id),
     case when v_is_reversal then 'REVERSAL' else 'REDEMPTION' end, p_distributor_id,
     p_redemption.coupon_id,
     case when v_is_reversal then -p_redemption.discount_minor else p_redemption.discount_minor end,
     p_redemption.currency, p_occurred_at, clock_timestamp());
end
$$;
