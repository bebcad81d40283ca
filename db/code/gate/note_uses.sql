-- Notes that these credentials were used in this hour. Each row is written once an hour at most,
-- whichever process notes it. Returns how many milliseconds are left of the hour.
create or replace function gate.note_uses(p_tenant_ids int[], p_credential_ids int[]) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now   timestamptz := clock_timestamp();
  v_hour  timestamptz := date_trunc('hour', v_now, 'UTC');
begin
  with used as (
    select c.tenant_id, c.credential_id
    from unnest(p_tenant_ids, p_credential_ids) u (tenant_id, credential_id)
    join core.credential c
      on c.tenant_id = u.tenant_id and c.credential_id = u.credential_id
    where c.last_used_at is null or c.last_used_at < v_hour
    -- Another process is noting it, or an operator revokes it.
    for no key update of c skip locked)
  update core.credential c
  set last_used_at = v_hour
  from used u
  where c.tenant_id = u.tenant_id and c.credential_id = u.credential_id;
  return extract(epoch from v_hour + interval '1 hour' - v_now) * 1000;
end
$$;
