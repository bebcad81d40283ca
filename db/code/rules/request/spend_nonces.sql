-- Records the nonces of a group and returns the ordinals of the calls whose nonce was used in the
-- last 11 minutes (twice the timestamp window and a little more). If a group uses a nonce twice,
-- the first call wins. If another transaction is using one, the advisory lock fails at once: the
-- call counts as reused and does not wait for that commit.
--
-- A row is ours if this transaction wrote it (xmin). Comparing times would not be enough, because
-- two times can be equal. Do not call this inside a savepoint: its rows would carry the
-- subtransaction's ID, so every nonce would look reused.
create or replace function rules.spend_nonces(p_calls core.call[]) returns int[]
language plpgsql volatile as $$
declare
  v_spent  int;
begin
  insert into core.nonce (tenant_id, credential_id, nonce, seen_at)
  -- equivalent mutant (function): a transaction begins with its nonces
  select c.tenant_id, c.credential_id, c.nonce, clock_timestamp()
  from unnest(p_calls) c
  where c.caller_id is not null
    and c.nonce is not null
    -- the seed of a request's name is 2^32 or more, so a nonce never collides with one
    and pg_try_advisory_xact_lock(hashtextextended(c.nonce, c.credential_id))
  on conflict do nothing;
  get diagnostics v_spent = row_count;

  -- the usual case: all nonces are new
  if v_spent = cardinality(p_calls) then
    return '{}';
  end if;
  -- The others are in use, were used, or are so old that they count as new. Such an old one may be
  -- deleted at this moment: an update would miss it.
  insert into core.nonce as n (tenant_id, credential_id, nonce, seen_at)
  select distinct on (c.credential_id, c.nonce)
         c.tenant_id, c.credential_id, c.nonce, clock_timestamp()
  from unnest(p_calls) c
  where c.caller_id is not null
    and c.nonce is not null
    and pg_try_advisory_xact_lock(hashtextextended(c.nonce, c.credential_id))
  on conflict (tenant_id, credential_id, nonce) do update
  set seen_at = excluded.seen_at
  -- equivalent mutant (boundary): nothing is 11 minutes old to the microsecond
  where n.seen_at < excluded.seen_at - interval '11 minutes';
  return array(
    select c.ordinal
    from (
      select a.ordinal, a.tenant_id, a.credential_id, a.nonce,
             row_number() over (partition by a.credential_id, a.nonce order by a.ordinal) as place
      from unnest(p_calls) a
      where a.caller_id is not null and a.nonce is not null) c
    left join core.nonce n
      on n.tenant_id = c.tenant_id
         and n.credential_id = c.credential_id
         and n.nonce = c.nonce
         and n.xmin = pg_current_xact_id()::xid
    where c.place > 1 or n.nonce is null);
end
$$;
