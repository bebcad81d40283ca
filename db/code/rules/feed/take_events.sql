-- Begins a step of the sequencer, which takes some events and leaves others waiting for their
-- party. Both lists are in the order of their numbers. Late numbers leave the gaps. Numbers that
-- are missing between the old and the new highest number become gaps, and so do those that wait.
--
-- A transaction that drew a missing number got its ID before the snapshot in which the events were
-- found. This step gets its own ID here, after that snapshot, so its ID is higher than theirs. The
-- snapshot's xmax is not a safe bound: transactions that were running at the snapshot may have
-- higher IDs.
create or replace function rules.take_events(
  p_taken rules.event[], p_waiting rules.event[], p_snapshot pg_snapshot)
returns void
language plpgsql volatile as $$
declare
  v_old_high  bigint := (select s.high_seq from core.sequencer s);
  v_new_high  bigint := greatest(
    v_old_high, (p_taken[cardinality(p_taken)]).event_seq,
    (p_waiting[cardinality(p_waiting)]).event_seq);
  v_late      bigint[] := '{}';
begin
  if (p_taken[1]).event_seq <= v_old_high then
    v_late := array(select e.event_seq from unnest(p_taken) e where e.event_seq <= v_old_high);
  end if;
  -- equivalent mutant (sign, boundary): if no number is missing, the insert finds none
  if v_new_high - v_old_high > cardinality(p_taken) - cardinality(v_late) then
    insert into core.event_gap (event_seq, drawn_before)
    select m.event_seq, pg_current_xact_id()
    from (
      select generate_series(v_old_high + 1, v_new_high) as event_seq
      except
      select e.event_seq from unnest(p_taken || p_waiting) e) m;
  end if;
  if cardinality(p_waiting) > 0 then
    update core.event_gap g
    set drawn_before = null, tenant_id = e.tenant_id, party_id = e.party_id
    from unnest(p_waiting) e
    where g.event_seq = e.event_seq and g.party_id is null;
    insert into core.event_gap (event_seq, tenant_id, party_id)
    select e.event_seq, e.tenant_id, e.party_id
    from unnest(p_waiting) e
    where e.event_seq > v_old_high;
  end if;
  update core.sequencer s
  set step = s.step + 1, after_seq = s.high_seq, high_seq = v_new_high, late_seqs = v_late,
      last_snapshot = p_snapshot;
end
$$;
