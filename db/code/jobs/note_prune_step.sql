-- Notes how far a walk through a table has come. Null: it has reached the end.
create or replace function jobs.note_prune_step(p_table text, p_next_block bigint) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  delete from core.prune_walk w where w.table_name = p_table and p_next_block is null;
  insert into core.prune_walk as w (table_name, next_block, noted_at)
  select p_table, p_next_block, clock_timestamp()
  where p_next_block is not null
  on conflict (table_name) do update
  set next_block = excluded.next_block, noted_at = excluded.noted_at;
end;
