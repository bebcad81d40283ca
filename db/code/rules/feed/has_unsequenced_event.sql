-- Whether the sequencer still has to process a settled event, which may belong to a day that is
-- over. Newer events do not matter: they belong to no such day, and under load there are always
-- some. Events that wait for their party do not matter either: its days do not close.
create or replace function rules.has_unsequenced_event(p_now timestamptz) returns boolean
language plpgsql stable as $$
declare
  v_settled  timestamptz := rules.compute_settled_time(p_now);
begin
  -- ordered and limited, so that the planner cannot scan sequenced events
  return exists (
    select
    from (
      select e.recorded_at
      from rules.event e
      where e.event_seq > (select s.high_seq from core.sequencer s)
      order by e.event_seq
      limit 1000) w
    where w.recorded_at < v_settled)
  or exists (
    select
    from rules.event e
    where e.event_seq = any (array(
        select g.event_seq from core.event_gap g where g.drawn_before is not null))
      and e.recorded_at < v_settled);
end
$$;
