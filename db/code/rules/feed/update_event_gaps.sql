-- Updates the list of missing event numbers. Removes the numbers found now, and those that were
-- rolled back: every transaction that may have drawn them has ended. Adds the numbers missing
-- between the old and the new highest number.
--
-- A transaction that drew a missing number got its ID before this step's snapshot. This step gets
-- its own ID here, after the snapshot, so its ID is higher than theirs. The snapshot's xmax is not
-- a safe bound: transactions that were running at the snapshot may have higher IDs.
create or replace function rules.update_event_gaps(
  p_old_high bigint, p_new_high bigint, p_found bigint[], p_oldest_running xid8)
returns void
language sql volatile
begin atomic
  delete from core.event_gap g
  where g.drawn_before <= p_oldest_running
     -- from another server, before a restore
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
  'Updates the list of missing event numbers.';
