-- Deletes nonces that may be used again, at most p_limit. Returns how many. Uses now(), because
-- clock_timestamp() is volatile and cannot bound an index scan.
create or replace function jobs.prune_nonces(p_limit int) returns int
language sql volatile security definer set search_path = pg_catalog, pg_temp
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
