-- Forgets nonces that may be used again, a step at a time. now(), as an index cannot be asked for a clock that moves.
create or replace function jobs.prune_nonces(p_limit int) returns int
language sql volatile security definer
begin atomic
  with removed as (
    delete from core.nonce n
    where n.ctid = any (array(
      select o.ctid
      from core.nonce o
      where o.seen_at < now() - interval '11 minutes'
      order by o.seen_at
      limit p_limit
      for update skip locked))
    returning 1)
  select count(*)::int from removed;
end;
comment on function jobs.prune_nonces(int) is 'Removes nonces older than 11 minutes, at most p_limit.';
