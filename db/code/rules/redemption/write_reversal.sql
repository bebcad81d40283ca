-- Reverses a redemption: writes the reversal and its ledger entry.
create or replace function rules.write_reversal(
  p_redemption core.redemption, p_reversal_id uuid, p_distributor_id int, p_caller_id int,
  p_reason text, p_reversed_at timestamptz)
returns void
language plpgsql volatile as $$
begin
  update core.redemption r
  set status = 'REVERSED', ended_at = p_reversed_at
  where r.tenant_id = p_redemption.tenant_id and r.redemption_id = p_redemption.redemption_id;
  insert into core.reversal
    (tenant_id, reversal_id, redemption_id, caller_id, reason, reversed_at)
  values
    (p_redemption.tenant_id, p_reversal_id, p_redemption.redemption_id, p_caller_id, p_reason,
     p_reversed_at);
  perform rules.write_ledger_entry(p_redemption, p_reversal_id, p_distributor_id, p_reversed_at);
end
$$;
