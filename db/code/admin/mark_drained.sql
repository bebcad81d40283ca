create or replace function admin.mark_drained(p_attempt int) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  update core.tenant t
  set drained = t.fence
  where t.fence = p_attempt and t.home = core.read_cell() and t.drained is distinct from t.fence;
end;
comment on function admin.mark_drained(int) is
  'Call this once every transaction that began before the fence of an attempt has ended. The mark '
  'follows them in the log, so a copy of this cell that has it lacks none of them.';
