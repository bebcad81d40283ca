create or replace function admin.destroy_codes(p_batch text, p_reason text) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_batch   core.batch := rules.hold_batch_for_patch(p_batch);
begin
  if v_batch.status = 'PENDING' and v_batch.recalled_at is null then
    raise exception '% is still being minted', p_batch using errcode = 'CP409';
  elsif v_batch.salt is not null then
    update core.batch b
    set salt = null, codes_destroyed_at = clock_timestamp()
    where b.tenant_id = v_batch.tenant_id and b.batch_id = v_batch.batch_id
    returning * into v_batch;
    perform rules.write_audit(v_batch.tenant_id, 'destroy_codes', p_batch, v_reason,
      '{"codes":{"old":"kept","new":"destroyed"}}');
  end if;
  return v_batch.codes_destroyed_at;
end
$$;
comment on function admin.destroy_codes(text, text) is
  'Deletes the salt of a batch, so that nobody can derive its codes again. Returns when that '
  'happened; a second call changes nothing. Its coupons can still be redeemed, because that needs '
  'only the lookup hash. A batch that is still being minted needs its salt and is refused.';
