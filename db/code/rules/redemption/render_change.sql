-- A redemption or reversal in the list of a merchant: the redemption as it is now, with what
-- changed and when. changed_at is when the change was recorded, which decides its business day.
create or replace function rules.render_change(
  p_call core.call, p_entry core.ledger_entry, p_now timestamptz)
returns text
language plpgsql stable as $$
begin
  return format('%s,"change":"%s","changed_at":"%s"}',
    left(rules.render_redemption(p_call, case p_entry.entry_type
      when 'REDEMPTION' then p_entry.entry_id
      else core.find_reversed_redemption(p_entry.tenant_id, p_entry.entry_id)
    end, p_now), -1),
    p_entry.entry_type, rules.format_time(p_entry.recorded_at));
end
$$;
