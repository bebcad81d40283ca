-- Sends events to a subscriber again, starting with a first attempt. An attempt that is under way
-- does not count: no lease has this holder.
create or replace function rules.replay_deliveries(
  p_tenant_id int, p_party_id int, p_events uuid[])
returns void
language sql volatile
begin atomic
  insert into core.delivery as d
    (tenant_id, party_id, event_id, event_seq, next_attempt_at, counts_for)
  select e.tenant_id, p_party_id, e.event_id, e.event_seq, statement_timestamp(),
         '00000000-0000-0000-0000-000000000000'
  from rules.event e
  where e.tenant_id = p_tenant_id and e.event_id = any (p_events)
  on conflict (tenant_id, party_id, event_id) do update
  set attempt_count = 0, parked_at = null, last_error = null,
      next_attempt_at = excluded.next_attempt_at, counts_for = excluded.counts_for;
end;
