create or replace function admin.open_export(
  p_batch text, p_is_unreleased boolean,
  out tenant_id int, out batch_id int, out external_id text, out salt bytea, out key_version text,
  out total_count int)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_batch  core.batch := rules.hold_batch_for_patch(p_batch);
begin
  if v_batch.salt is null then
    raise exception 'the codes of % were destroyed on %',
      p_batch, rules.format_time(v_batch.codes_destroyed_at)
      using errcode = 'CP409';
  elsif v_batch.recalled_at is not null then
    raise exception '% was recalled on %: its coupons are void',
      p_batch, rules.format_time(v_batch.recalled_at)
      using errcode = 'CP409';
  elsif v_batch.status = 'PENDING' then
    raise exception '% is still being minted', p_batch using errcode = 'CP409';
  elsif v_batch.status = 'COMPLETED' and p_is_unreleased is not true then
    raise exception '% is not released: allocate it first, or use --unreleased', p_batch
      using errcode = 'CP409';
  end if;
  perform rules.write_audit(v_batch.tenant_id, 'export_codes', p_batch, null,
    jsonb_build_object('status', v_batch.status, 'total_count', v_batch.total_count));
  tenant_id := v_batch.tenant_id;
  batch_id := v_batch.batch_id;
  external_id := v_batch.external_id;
  salt := v_batch.salt;
  key_version := v_batch.key_version;
  total_count := v_batch.total_count;
end
$$;
comment on function admin.open_export(text, boolean) is
  'Starts an export of a batch''s codes: checks that it is allowed, and writes it to the audit '
  'table. Codes cannot be derived from the salt alone; only the program that calls this has the '
  'keys.';
