-- One step: refreshes the statistics of one table that has doubled since its last analyze, or in
-- which as many rows have changed. Returns 1, or 0 if no such table is left or all of them are
-- locked.
--
-- Each call handles one table, so an error undoes no other table's statistics. The order is random,
-- so a table that always fails is not always the first. A table that another session analyzes,
-- vacuums or locks is left for a later call: waiting would end an autovacuum.
--
-- Autovacuum looks only once a minute, and leaves tables with fewer than 50 changes alone. A plan
-- made for an empty table may use any index for it; on a busy day such a plan would read whole
-- tables for that minute. In a small table, such a plan reads all rows of a tenant to find one. New
-- statistics make every session plan again.
--
-- reltuples is -1 before the first analyze. Only growth counts for small tables: a batch that is
-- being minted is updated ten times a second.
create or replace function jobs.analyze_grown_tables() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_database  oid := (select d.oid from pg_database d where d.datname = current_database());
  v_table     record;
begin
  for v_table in
    select c.oid
    from pg_class c
    where c.relnamespace = 'core'::regnamespace
      and c.relkind = 'r'
      and (pg_stat_get_live_tuples(c.oid) > 2 * greatest(c.reltuples, 0)
           or pg_stat_get_mod_since_analyze(c.oid) > greatest(c.reltuples, 500))
    order by random()
  loop
    -- Skipping a table writes a warning to the server's log, so this tries only tables that look
    -- free.
    continue when exists (
      select
      from pg_locks l
      where l.database = v_database and l.relation = v_table.oid and l.pid <> pg_backend_pid()
        and l.mode not in ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock'));
    execute format('analyze (skip_locked) %s', v_table.oid::regclass);
    -- analyze keeps its lock until the transaction ends. Without a lock, it has skipped the table.
    if exists (
      select
      from pg_locks l
      where l.database = v_database and l.relation = v_table.oid and l.pid = pg_backend_pid()
        and l.mode = 'ShareUpdateExclusiveLock')
    then
      return 1;
    end if;
  end loop;
  return 0;
end
$$;
