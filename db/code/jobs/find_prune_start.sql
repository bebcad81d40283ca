-- The block with which a walk through a table begins: where a walk of the last day was interrupted,
-- otherwise the first.
create or replace function jobs.find_prune_start(p_table text) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select coalesce((
    select w.next_block
    from core.prune_walk w
    where w.table_name = p_table and w.noted_at > now() - interval '1 day'), 0);
end;
