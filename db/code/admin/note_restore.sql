create or replace function admin.note_restore(p_reason text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_now     bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_base    bigint;
begin
  -- wait until the sequencer is idle, then block it until commit
  perform pg_advisory_xact_lock(rules.compute_sequencer_lock());
  update core.sequencer s
  set feed_base = greatest(v_now, s.feed_base + 1000000000000)
  returning s.feed_base into v_base;
  update core.feed f
  set last_position = v_base, skipped_count = f.skipped_count + v_base - f.last_position
  where f.last_position < v_base;
  perform rules.write_audit(null, 'note_restore', 'database', v_reason,
    jsonb_build_object('feed_base', v_base));
end
$$;
comment on function admin.note_restore(text) is
  'Call this once after a restore to an earlier moment. Feed readers may hold cursors from after '
  'that moment. Those positions would be reused for other events, which the readers would '
  'silently miss. So every feed, including future ones, continues above all earlier positions: at '
  'the number of microseconds since 1970, which no feed reaches by counting events. Old cursors '
  'then return everything since the restore. If the clock has been set back since an earlier '
  'restore, it would lower the base. The base then rises by more than any feed has counted since.';
