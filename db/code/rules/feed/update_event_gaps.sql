-- Keeps the list of event numbers that are still awaited: those found now leave it, those whose transactions are
-- all over leave it (they were rolled back), those missing between the old high and the new one join it.
--
-- Who drew a missing number did so before the snapshot of this step, and had its transaction id by then. Ours is
-- drawn here, after it, and so is above all of theirs. (The snapshot's xmax is not: it is the last one that has
-- ended, plus one, and younger ones may be running.)
create or replace function rules.update_event_gaps(
  p_old_high bigint, p_new_high bigint, p_found bigint[], p_oldest_running xid8)
returns void
language sql volatile
begin atomic
  delete from core.event_gap g
  where g.seen_before <= p_oldest_running
     -- drawn on another server, before a restore
     or g.seen_before > pg_current_xact_id()
     or g.event_seq = any (p_found);
  insert into core.event_gap (event_seq, seen_before)
  select m.event_seq, pg_current_xact_id()
  from (
    select generate_series(p_old_high + 1, p_new_high) as event_seq
    except
    select unnest(p_found)) m;
end;
comment on function rules.update_event_gaps(bigint, bigint, bigint[], xid8) is 'Event numbers that the sequencer still awaits.';
