-- Leaves the events of stuck parties waiting and returns the others. Usually no party is stuck, so
-- this costs only the first query.
create or replace function rules.split_stuck_events(
  p_events rules.event[], p_snapshot pg_snapshot)
returns rules.event[]
language plpgsql volatile as $$
declare
  v_waiting  rules.event[];
begin
  if not exists (select from core.stuck_work s where s.work = 'events') then
    return p_events;
  end if;
  v_waiting := array(
    select e
    from unnest(p_events) e
    join core.stuck_work s
      on s.tenant_id = e.tenant_id and s.party_id = e.party_id and s.work = 'events'
    order by e.event_seq);
  if cardinality(v_waiting) = 0 then
    return p_events;
  end if;
  perform rules.take_events('{}', v_waiting, p_snapshot);
  return array(
    select e
    from unnest(p_events) e
    where not exists (
      select
      from core.stuck_work s
      where s.tenant_id = e.tenant_id and s.party_id = e.party_id and s.work = 'events')
    order by e.event_seq);
end
$$;
