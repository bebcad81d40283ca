-- Creates a delivery for each event whose party has an enabled webhook. All deliveries of a step
-- are due at the same moment, so they are sent in the order of their event numbers.
create or replace function rules.create_deliveries(p_events rules.event[]) returns void
language plpgsql volatile as $$
begin
  insert into core.delivery (tenant_id, party_id, event_id, event_seq, next_attempt_at)
  select e.tenant_id, e.party_id, e.event_id, e.event_seq, statement_timestamp()
  from unnest(p_events) e
  join core.webhook w
    on w.tenant_id = e.tenant_id and w.party_id = e.party_id and w.disabled_at is null
  on conflict do nothing;
end
$$;
