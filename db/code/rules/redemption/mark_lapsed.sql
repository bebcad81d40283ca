-- Marks an expired lock as LAPSED. The calling function holds the coupon's row and updates it.
create or replace function rules.mark_lapsed(
  p_tenant_id int, p_redemption_id uuid, p_now timestamptz)
returns void
language plpgsql volatile as $$
begin
  update core.redemption r
  set status = 'LAPSED', ended_at = p_now
  -- equivalent mutant (operand r.status = 'LOCKED'): the callers have seen that it is LOCKED
  where r.tenant_id = p_tenant_id and r.redemption_id = p_redemption_id and r.status = 'LOCKED';
end
$$;
