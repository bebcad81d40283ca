create or replace function admin.forget_key(p_version text, p_reason text) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set timezone = 'UTC' as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_since   timestamptz;
begin
  if exists (select from core.batch b where b.key_version = p_version)
     or rules.is_key_in_use(p_version)
  then
    raise exception 'codes or secrets were made with key %, so it stays registered', p_version
      using errcode = 'CP409';
  end if;
  delete from core.master_key m where m.version = p_version
  returning m.registered_at into v_since;
  if not found then
    raise exception 'no key %', p_version using errcode = 'CP404';
  end if;
  perform rules.write_audit(null, 'forget_key', p_version, v_reason, jsonb_build_object(
    'registered_at', jsonb_build_object('old', v_since, 'new', null)));
end
$$;
comment on function admin.forget_key(text, text) is
  'Removes a version of the master key that nothing was ever made with, such as a mistyped key on '
  'a new database. Codes and secrets keep their key registered.';
