-- Updates the list of missing event numbers. Numbers found now leave it, and so do those whose
-- transactions have all ended (they were rolled back). Numbers missing between the old and the new
-- highest one join it.
--
-- A transaction that drew a missing number did so before the snapshot of this step, and had its
-- transaction ID by then. Ours is drawn here, after the snapshot, so it is higher than all of
-- theirs. (The snapshot's xmax is not: it is the highest ended ID plus one, and higher ones may be
-- running.)
create or replace function rules.update_event_gaps(
  p_old_high bigint, p_new_high bigint, p_found bigint[], p_oldest_running xid8)
returns void
language sql volatile
begin atomic
  delete from core.event_gap g
  where g.drawn_before <= p_oldest_running
     -- drawn on another server before a restore
     or g.drawn_before > pg_current_xact_id()
     or g.event_seq = any (p_found);
  insert into core.event_gap (event_seq, drawn_before)
  select m.event_seq, pg_current_xact_id()
  from (
    select generate_series(p_old_high + 1, p_new_high) as event_seq
    except
    select unnest(p_found)) m;
end;
comment on function rules.update_event_gaps(bigint, bigint, bigint[], xid8) is
  'Updates the event numbers that the sequencer still waits for.';
