-- The calls (ordinals) of a group whose nonces are spent now for the first time in 11 minutes (twice the
-- timestamp window and a little). Two at the same moment: the advisory lock lets one win at once, so that
-- nobody waits for the other's commit. Two in one group: the first wins.
create or replace function rules.spend_nonces(p_calls core.call[]) returns int[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_fresh  int[];
begin
  with presented as (
    select distinct on (c.credential_id, c.nonce) c.ordinal, c.tenant_id, c.credential_id, c.nonce
    from unnest(p_calls) c
    where c.caller_id is not null
      and c.nonce is not null
      and pg_try_advisory_xact_lock(
        hashtextextended(format('nonce %s %s %s', c.tenant_id, c.credential_id, c.nonce), 0))
    order by c.credential_id, c.nonce, c.ordinal),
  spent as (
    insert into core.nonce as n (tenant_id, credential_id, nonce, seen_at)
    select p.tenant_id, p.credential_id, p.nonce, clock_timestamp()
    from presented p
    on conflict (tenant_id, credential_id, nonce) do update
    set seen_at = excluded.seen_at
    where n.seen_at < excluded.seen_at - interval '11 minutes'
    returning credential_id, nonce)
  select case
    when (select count(*) from presented) = (select count(*) from spent)
      then array(select p.ordinal from presented p)
    else array(
      select p.ordinal
      from presented p
      join spent s on s.credential_id = p.credential_id and s.nonce = p.nonce)
  end into v_fresh;
  return v_fresh;
end
$$;
comment on function rules.spend_nonces(core.call[]) is 'Spends the nonces of a group: the calls whose nonces were unspent.';
