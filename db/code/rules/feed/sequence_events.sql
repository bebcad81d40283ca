-- One step of the sequencer: gives events their places. Returns whether it took all of them.
--
-- If the rows of one party make the step fail, it tries each half of the parties, and so on. So all
-- other parties get their places, and the events of that party wait until jobs.try_stuck_work
-- succeeds. This costs the usual step one extra subtransaction.
create or replace function rules.sequence_events(p_events rules.event[], p_snapshot pg_snapshot)
returns boolean
language plpgsql volatile as $$
declare
  v_reason  text;
  v_half    record;
begin
  perform rules.take_events(p_events, '{}', p_snapshot);
  perform rules.append_to_feeds(p_events);
  perform rules.list_changes(p_events);
  perform rules.open_books(p_events);
  perform rules.post_entries(p_events);
  perform rules.create_deliveries(p_events);
  return true;
exception when data_exception or integrity_constraint_violation then
  get stacked diagnostics v_reason = message_text;
  with ranked as (
    select e as event, e.event_seq, dense_rank() over (order by e.tenant_id, e.party_id) as rank
    from unnest(p_events) e)
  select m.parties,
         array(select r.event from ranked r where r.rank <= m.parties / 2 order by r.event_seq)
           as first,
         array(select r.event from ranked r where r.rank > m.parties / 2 order by r.event_seq)
           as second
    into v_half
  from (select max(r.rank) as parties from ranked r) m;
  if v_half.parties = 1 then
    perform rules.take_events('{}', p_events, p_snapshot);
    perform rules.note_stuck_work(
      'events', (p_events[1]).tenant_id, (p_events[1]).party_id, null, v_reason);
  else
    perform rules.sequence_events(v_half.first, p_snapshot);
    perform rules.sequence_events(v_half.second, p_snapshot);
  end if;
  return false;
end
$$;
