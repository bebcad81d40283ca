-- Spends the nonces of a group and returns the ordinals of the calls whose nonce was used before. A
-- nonce is remembered for 11 minutes: twice the timestamp window and a little more.
-- Concurrent uses: the advisory lock decides at once, so nobody waits for another's commit. Two
-- uses in one group: the first wins.
-- Our rows are told apart by the transaction that wrote them: two transactions can read the same
-- microsecond from the clock. A subtransaction has another id, so this must not run in a savepoint:
-- there all nonces would count as used.
create or replace function rules.spend_nonces(p_calls core.call[]) returns int[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_spent  int;
begin
  insert into core.nonce as n (tenant_id, credential_id, nonce, seen_at)
  select distinct on (c.credential_id, c.nonce)
         c.tenant_id, c.credential_id, c.nonce, clock_timestamp()
  from unnest(p_calls) c
  where c.caller_id is not null
    and c.nonce is not null
    and pg_try_advisory_xact_lock(
      hashtextextended(format('nonce %s %s %s', c.tenant_id, c.credential_id, c.nonce), 0))
  on conflict (tenant_id, credential_id, nonce) do update
  set seen_at = excluded.seen_at
  where n.seen_at < excluded.seen_at - interval '11 minutes';
  get diagnostics v_spent = row_count;

  -- nearly always all are new
  if v_spent = cardinality(p_calls) then
    return '{}';
  end if;
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
comment on function rules.spend_nonces(core.call[]) is
  'Spends the nonces of a group and returns the calls whose nonce was used before.';
