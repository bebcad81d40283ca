-- Sends events to a subscriber again, starting with a first attempt. An attempt that is under way
-- does not count: no lease has this holder. Replays go behind, except that they join what waits for
-- the same coupon: so an event that still waits keeps its place.
create or replace function rules.replay_deliveries(
  p_tenant_id int, p_party_id int, p_events uuid[])
returns void
language sql volatile
begin atomic
  insert into core.delivery as d
    (tenant_id, party_id, event_id, event_seq, coupon_id, next_attempt_at, counts_for, is_behind,
     is_expanded)
  select e.tenant_id, p_party_id, e.event_id, e.event_seq, e.coupon_id, statement_timestamp(),
         '00000000-0000-0000-0000-000000000000',
         coalesce(rules.find_place_of_coupon(p_tenant_id, p_party_id, e.coupon_id), true), w.expand
  from rules.event e
  join core.webhook w on w.tenant_id = e.tenant_id and w.party_id = p_party_id
  where e.tenant_id = p_tenant_id and e.event_id = any (p_events)
  on conflict (tenant_id, party_id, event_id) do update
  set attempt_count = 0, parked_at = null, last_error = null,
      next_attempt_at = case
        when d.parked_at is null then least(d.next_attempt_at, excluded.next_attempt_at)
        else excluded.next_attempt_at
      end,
      counts_for = excluded.counts_for, is_behind = excluded.is_behind,
      is_expanded = excluded.is_expanded;
end;
