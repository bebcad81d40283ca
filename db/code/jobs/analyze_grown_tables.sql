-- Refreshes the statistics of busy tables that have doubled since their last analyze. Returns how
-- many.
--
-- Autovacuum looks only once a minute. A plan made on an empty table may use any index for it; on a
-- busy day such a plan would read whole tables for that minute. New statistics make every session
-- plan again.
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
      and pg_stat_get_mod_since_analyze(c.oid) > greatest(c.reltuples, 500)
  loop
    case v_table
      when 'coupon' then analyze core.coupon;
      when 'redemption' then analyze core.redemption;
      when 'ledger_entry' then analyze core.ledger_entry;
      when 'event' then analyze core.event;
      when 'request' then analyze core.request;
      when 'nonce' then analyze core.nonce;
      when 'feed_event' then analyze core.feed_event;
      when 'posting' then analyze core.posting;
      when 'delivery' then analyze core.delivery;
      else continue;
    end case;
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;
comment on function jobs.analyze_grown_tables() is
  'Analyzes the busy tables that have doubled; returns how many.';
