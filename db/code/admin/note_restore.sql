-- After the database was taken back to an earlier moment. Readers of feeds may hold cursors that were given out after
-- that moment, for positions that would now be given to other events: those would be skipped, and nobody would see it. So
-- all feeds, those of the future too, go on at a position above any that was ever given out: the microseconds since 1970, which
-- no feed's count of events overtakes. Old cursors then mean: everything since the restore.
create or replace function admin.note_restore(p_reason text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_base    bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
begin
  -- between two steps of the sequencer
  perform pg_advisory_xact_lock(hashtextextended('sequencer', 0));
  update core.sequencer s set feed_base = greatest(v_base, s.feed_base + 1);
  update core.feed f
  set last_position = s.feed_base, skipped_count = f.skipped_count + s.feed_base - f.last_position
  from core.sequencer s
  where f.last_position < s.feed_base;
  perform rules.write_audit(null, 'note_restore', 'database', v_reason, jsonb_build_object('feed_base', v_base));
end
$$;
comment on function admin.note_restore(text) is 'To be called once after each restore to an earlier moment: no lost cursor can be mistaken for one of now.';
