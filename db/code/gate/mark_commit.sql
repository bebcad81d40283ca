-- Returns the time in milliseconds, and writes to the log, so that the commit of this transaction
-- waits for the disk and for synchronous standbys. The gate calls it twice in a row to learn how
-- long a commit takes. The message is for nobody. p_cell: which cell a router asks.
create or replace function gate.mark_commit(p_cell int) returns float8
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_logical_emit_message(true, 'coupon', '');
  return extract(epoch from clock_timestamp()) * 1000;
end
$$;
