-- The deliveries of a subscriber that are due, in the order in which a round sends them (turn).
--
-- Every fifth delivery is one that goes behind, so that these are never starved: the second, the
-- seventh and so on, because a slow receiver gets only the first few of a round. The others are
-- those that go first. If one kind runs out, the other fills the round. Both are in the order of
-- their due times, then of their events. An index has this order, so a large backlog does not make
-- this slow.
create or replace function rules.find_due_deliveries(
  p_tenant_id int, p_party_id int, p_limit int,
  out event_id uuid, out attempt_count int, out counts_for uuid, out is_expanded boolean,
  out turn numeric)
returns setof record
language plpgsql volatile as $$
declare
  v_now  timestamptz := clock_timestamp();
begin
  return query
  select d.event_id, d.attempt_count, d.counts_for, d.is_expanded,
         case when k.is_behind then d.place * 4 - 2.5 else d.place end as turn
  from (values (false), (true)) k (is_behind)
  cross join lateral (
    select x.event_id, x.attempt_count, x.counts_for, x.is_expanded,
           row_number() over (order by x.next_attempt_at, x.event_seq) as place
    from core.delivery x
    where x.tenant_id = p_tenant_id
      and x.party_id = p_party_id
      and x.is_behind = k.is_behind
      and x.parked_at is null
      and x.next_attempt_at <= v_now
    order by x.next_attempt_at, x.event_seq
    limit p_limit) d
  order by 5
  limit p_limit;
end
$$;
