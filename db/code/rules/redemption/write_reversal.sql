-- Reverses a redemption: writes the reversal and its ledger entry, which is also the event and gets
-- the ID of the reversal. It is one statement, because the triggers compare the tables at its end.
create or replace function rules.write_reversal(
  p_redemption core.redemption, p_reversal_id uuid, p_distributor_id int, p_caller_id int,
  p_reason text, p_reversed_at timestamptz)
returns void
language plpgsql volatile as $$
begin
  with ended as (
    update core.redemption r
    set status = 'REVERSED', ended_at = p_reversed_at
    where r.tenant_id = p_redemption.tenant_id and r.redemption_id = p_redemption.redemption_id),
  new_reversal as (
    insert into core.reversal
      (tenant_id, reversal_id, redemption_id, caller_id, reason, reversed_at)
    values
      (p_redemption.tenant_id, p_reversal_id, p_redemption.redemption_id, p_caller_id, p_reason,
       p_reversed_at))
  insert into core.ledger_entry
    (tenant_id, entry_id, entry_type, distributor_id, coupon_id, amount_minor, currency,
     occurred_at, recorded_at)
  values
    (p_redemption.tenant_id, p_reversal_id, 'REVERSAL', p_distributor_id, p_redemption.coupon_id,
     -p_redemption.discount_minor, p_redemption.currency, p_reversed_at, p_reversed_at);
end
$$;
