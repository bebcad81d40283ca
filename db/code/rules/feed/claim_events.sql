-- Begins a step of the sequencer, which takes these events. They are in the order of their numbers;
-- the late ones are taken from the gaps. Adds the numbers that are missing between the old and the
-- new highest number.
--
-- A transaction that drew a missing number got its ID before the snapshot in which the events were
-- found. This step gets its own ID here, after that snapshot, so its ID is higher than theirs. The
-- snapshot's xmax is not a safe bound: transactions that were running at the snapshot may have
-- higher IDs.
create or replace function rules.claim_events(
  p_old_high bigint, p_events rules.event[], p_snapshot pg_snapshot)
returns void
language plpgsql volatile as $$
declare
  v_new_high  bigint := greatest(p_old_high, (p_events[cardinality(p_events)]).event_seq);
  v_late      bigint[] := '{}';
begin
  if (p_events[1]).event_seq <= p_old_high then
    v_late := array(
      select e.event_seq from unnest(p_events) e where e.event_seq <= p_old_high);
  end if;
  if v_new_high - p_old_high > cardinality(p_events) - cardinality(v_late) then
    insert into core.event_gap (event_seq, drawn_before)
    select m.event_seq, pg_current_xact_id()
    from (
      select generate_series(p_old_high + 1, v_new_high) as event_seq
      except
      select e.event_seq from unnest(p_events) e) m;
  end if;
  update core.sequencer s
  set step = s.step + 1, after_seq = s.high_seq, high_seq = v_new_high, late_seqs = v_late,
      last_snapshot = p_snapshot;
end
$$;
comment on function rules.claim_events(bigint, rules.event[], pg_snapshot) is
  'Begins a step of the sequencer, which takes these events.';
