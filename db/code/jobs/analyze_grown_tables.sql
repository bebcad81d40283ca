-- Refreshes the statistics of tables that have doubled since their last analyze, or of which as
-- many rows have changed. Returns how many.
--
-- Autovacuum looks only once a minute, and leaves tables with fewer than 50 changes alone. A plan
-- made for an empty table may use any index for it; on a busy day such a plan would read whole
-- tables for that minute. In a small table, such a plan reads all rows of a tenant to find one. New
-- statistics make every session plan again.
create or replace function jobs.analyze_grown_tables() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_table  text;
  v_count  int := 0;
begin
  -- one session at a time
  if not pg_try_advisory_xact_lock(hashtextextended('analyze', 0)) then
    return 0;
  end if;
  for v_table in
    select c.relname
    from pg_class c
    where c.relnamespace = 'core'::regnamespace
      and c.relkind = 'r'
      -- reltuples: -1 before the first analyze. Only growth counts for small tables: a batch that
      -- is being minted is updated ten times a second.
      and (pg_stat_get_live_tuples(c.oid) > 2 * greatest(c.reltuples, 0)
           or pg_stat_get_mod_since_analyze(c.oid) > greatest(c.reltuples, 500))
  loop
    case v_table
      when 'tenant' then analyze core.tenant;
      when 'party' then analyze core.party;
      when 'merchant' then analyze core.merchant;
      when 'merchant_delegate' then analyze core.merchant_delegate;
      when 'store' then analyze core.store;
      when 'terminal' then analyze core.terminal;
      when 'template' then analyze core.template;
      when 'template_merchant' then analyze core.template_merchant;
      when 'credential' then analyze core.credential;
      when 'webhook' then analyze core.webhook;
      when 'batch' then analyze core.batch;
      when 'coupon' then analyze core.coupon;
      when 'coupon_extension' then analyze core.coupon_extension;
      when 'redemption' then analyze core.redemption;
      when 'reversal' then analyze core.reversal;
      when 'voiding' then analyze core.voiding;
      when 'lock_cancellation' then analyze core.lock_cancellation;
      when 'ledger_entry' then analyze core.ledger_entry;
      when 'ledger_book' then analyze core.ledger_book;
      when 'posting_page' then analyze core.posting_page;
      when 'statement' then analyze core.statement;
      when 'statement_line' then analyze core.statement_line;
      when 'event' then analyze core.event;
      when 'feed' then analyze core.feed;
      when 'feed_page' then analyze core.feed_page;
      when 'delivery' then analyze core.delivery;
      when 'delivery_attempt' then analyze core.delivery_attempt;
      when 'test_delivery' then analyze core.test_delivery;
      when 'request' then analyze core.request;
      when 'nonce' then analyze core.nonce;
      when 'audit' then analyze core.audit;
      else continue;
    end case;
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;
comment on function jobs.analyze_grown_tables() is
  'Analyzes the tables that have doubled; returns how many.';
