create or replace function rules.note_stuck_events(
  p_tenant_id int, p_party_id int, p_reason text)
returns void
language sql volatile
begin atomic
  select rules.note_stuck_work('events', p.tenant_id, p.party_id, p.external_id, p_reason)
  from core.party p
  where p.tenant_id = p_tenant_id and p.party_id = p_party_id;
end;
comment on function rules.note_stuck_events(int, int, text) is
  'From now on the events and business days of a party wait.';
