-- True when the nonce is spent now for the first time in 11 minutes (twice the timestamp window and a
-- little). Null: it was spent when this call was tried before. Two at the same moment: the advisory
-- lock lets one win at once, so that nobody waits for the other's commit.
create or replace function rules.spend_nonce(p_tenant_id int, p_credential_id int, p_nonce text)
returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if p_nonce is null then
    return true;
  end if;
  if not pg_try_advisory_xact_lock(
    hashtextextended(format('nonce %s %s %s', p_tenant_id, p_credential_id, p_nonce), 0))
  then
    return false;
  end if;
  insert into core.nonce as n (tenant_id, credential_id, nonce, seen_at)
  values (p_tenant_id, p_credential_id, p_nonce, clock_timestamp())
  on conflict (tenant_id, credential_id, nonce) do update
  set seen_at = excluded.seen_at
  where n.seen_at < excluded.seen_at - interval '11 minutes';
  return found;
end
$$;
comment on function rules.spend_nonce(int, int, text) is 'Spends a nonce: true when it was unspent.';
