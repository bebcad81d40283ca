-- Creates credentials and updates their secrets. A secret from the file replaces the stored one at
-- once; a generated secret is stored only for a new credential. A revoked credential stays
-- revoked. The party of a credential never changes, because its requests are recorded under that
-- caller.
create or replace function rules.apply_credentials(
  p_tenant_id int, p_credentials jsonb, p_path text,
  out problems jsonb, out changed int, out kept jsonb)
language plpgsql volatile as $$
declare
  v_item      record;
  v_given     jsonb;
  v_party_id  int;
  v_stored    core.credential;
begin
  problems := '[]';
  changed := 0;
  kept := '[]';
  for v_item in
    select c.value as credential, format('%s.%s', p_path, c.ordinality - 1) as path
    from jsonb_array_elements(p_credentials) with ordinality c
  loop
    v_given := v_item.credential;
    v_party_id := rules.find_party(p_tenant_id, v_given ->> 'party');
    if v_given ->> 'party' is not null and v_party_id is null then
      problems := problems
        || rules.describe_problem(v_item.path || '.party', 'no such party in this tenant');
      continue;
    end if;
    insert into core.credential (tenant_id, access_key, party_id, sealed_secret, secret_hash)
    values (p_tenant_id, v_given ->> 'access_key', v_party_id,
            decode(v_given ->> 'sealed_secret', 'hex'), decode(v_given ->> 'secret_hash', 'hex'))
    on conflict (access_key) do nothing;
    if found then
      changed := changed + 1;
      if (v_given ->> 'is_generated')::boolean then
        kept := kept || jsonb_build_array(v_given -> 'access_key');
      end if;
      continue;
    end if;
    select c.* into v_stored from core.credential c where c.access_key = v_given ->> 'access_key';
    if v_stored.tenant_id <> p_tenant_id then
      problems := problems
        || rules.describe_problem(v_item.path || '.access_key', 'belongs to another tenant');
    elsif v_stored.party_id is distinct from v_party_id then
      problems := problems || rules.describe_problem(
        v_item.path || '.party', 'cannot change: create a new credential');
    elsif not (v_given ->> 'is_generated')::boolean
      and encode(v_stored.secret_hash, 'hex') <> v_given ->> 'secret_hash'
      and not coalesce(v_given -> 'other_hashes', '[]') ? encode(v_stored.secret_hash, 'hex')
    then
      update core.credential c
      set sealed_secret = decode(v_given ->> 'sealed_secret', 'hex'),
          secret_hash = decode(v_given ->> 'secret_hash', 'hex')
      where c.tenant_id = p_tenant_id and c.credential_id = v_stored.credential_id;
      changed := changed + 1;
    end if;
  end loop;
end
$$;
