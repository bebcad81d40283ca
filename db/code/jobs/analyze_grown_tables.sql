-- One step: refreshes the statistics of one table that has doubled since its last analyze, or in
-- which as many rows have changed. Returns 1, or 0 if no such table is left that is not locked.
--
-- One table for each call, so an error undoes no other table's statistics. In random order, so a
-- table that always fails is not always the first. A table that another session analyzes, vacuums
-- or locks is left for a later call: waiting would end an autovacuum.
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
    select c.oid, c.relname as name
    from pg_class c
    where c.relnamespace = 'core'::regnamespace
      and c.relkind = 'r'
      and (pg_stat_get_live_tuples(c.oid) > 2 * greatest(c.reltuples, 0)
           or pg_stat_get_mod_since_analyze(c.oid) > greatest(c.reltuples, 500))
    order by random()
  loop
    -- A skipped table writes a warning to the server's log, so only those are tried that look free.
    continue when exists (
      select
      from pg_locks l
      where l.database = v_database and l.relation = v_table.oid and l.pid <> pg_backend_pid()
        and l.mode not in ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock'));
    case v_table.name
      when 'tenant' then analyze (skip_locked) core.tenant;
      when 'party' then analyze (skip_locked) core.party;
      when 'merchant' then analyze (skip_locked) core.merchant;
      when 'merchant_delegate' then analyze (skip_locked) core.merchant_delegate;
      when 'store' then analyze (skip_locked) core.store;
      when 'terminal' then analyze (skip_locked) core.terminal;
      when 'template' then analyze (skip_locked) core.template;
      when 'template_merchant' then analyze (skip_locked) core.template_merchant;
      when 'credential' then analyze (skip_locked) core.credential;
      when 'webhook' then analyze (skip_locked) core.webhook;
      when 'replaced_secret' then analyze (skip_locked) core.replaced_secret;
      when 'batch' then analyze (skip_locked) core.batch;
      when 'coupon' then analyze (skip_locked) core.coupon;
      when 'coupon_extension' then analyze (skip_locked) core.coupon_extension;
      when 'redemption' then analyze (skip_locked) core.redemption;
      when 'reversal' then analyze (skip_locked) core.reversal;
      when 'voiding' then analyze (skip_locked) core.voiding;
      when 'lock_cancellation' then analyze (skip_locked) core.lock_cancellation;
      when 'ledger_entry' then analyze (skip_locked) core.ledger_entry;
      when 'ledger_book' then analyze (skip_locked) core.ledger_book;
      when 'posting_page' then analyze (skip_locked) core.posting_page;
      when 'statement' then analyze (skip_locked) core.statement;
      when 'statement_line' then analyze (skip_locked) core.statement_line;
      when 'event' then analyze (skip_locked) core.event;
      when 'feed' then analyze (skip_locked) core.feed;
      when 'feed_page' then analyze (skip_locked) core.feed_page;
      when 'delivery' then analyze (skip_locked) core.delivery;
      when 'delivery_attempt' then analyze (skip_locked) core.delivery_attempt;
      when 'test_delivery' then analyze (skip_locked) core.test_delivery;
      when 'request' then analyze (skip_locked) core.request;
      when 'nonce' then analyze (skip_locked) core.nonce;
      when 'audit' then analyze (skip_locked) core.audit;
      else continue;
    end case;
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
comment on function jobs.analyze_grown_tables() is
  'Analyzes one of the tables that have doubled. 1: done; 0: none is left.';
