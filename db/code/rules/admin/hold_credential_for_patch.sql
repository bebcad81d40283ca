-- Locks a credential for a patch, by its access key.
create or replace function rules.hold_credential_for_patch(p_access_key text)
returns core.credential
language plpgsql volatile as $$
declare
  v_credential  core.credential;
begin
  select c.* into v_credential
  from core.credential c where c.access_key = p_access_key for no key update;
  if not found then
    raise exception 'no credential %', p_access_key using errcode = 'CP404';
  end if;
  return v_credential;
end
$$;
