create or replace function admin.resume_batch(p_batch text, p_reason text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_batch   core.batch := rules.hold_batch_for_patch(p_batch);
begin
  if v_batch.recalled_at is not null then
    raise exception '% was recalled and stays suspended', p_batch using errcode = 'CP409';
  elsif v_batch.suspended_at is not null then
    perform rules.resume_batch(v_batch, v_reason);
  end if;
end
$$;
comment on function admin.resume_batch(text, text) is
  'Ends the suspension of a batch. Refuses a recalled one; a second call changes nothing.';
