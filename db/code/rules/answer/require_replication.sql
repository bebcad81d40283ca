-- Makes the commit of this transaction wait until the synchronous standby has all that the
-- transaction has read. Somebody may have cancelled the wait of the transaction that wrote it, or
-- the server may have crashed during that wait. A commit waits only for what comes before it in the
-- log, and only if the transaction has written to the log, which a nonce does not.
--
-- p_has_waited: this statement may have waited for a lock. The setting that it sees is that of its
-- start, and a standby may have come back since: the commit itself knows.
create or replace function rules.require_replication(p_has_waited boolean) returns void
language plpgsql volatile as $$
begin
  if p_has_waited or current_setting('synchronous_standby_names') <> '' then
    perform pg_logical_emit_message(true, 'coupon', '');
  end if;
end
$$;
