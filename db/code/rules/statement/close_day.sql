-- Closes a business day: moves the book to the next one, and writes the statement. The caller holds
-- the sequencer's lock. The book comes first, before the entries are counted: a session that posts
-- to it waits for us, or we for it.
create or replace function rules.close_day(
  p_tenant_id int, p_distributor_id int, p_open_on date, p_next_on date)
returns void
language plpgsql volatile as $$
begin
  update core.ledger_book b
  set open_on = p_next_on
  where b.tenant_id = p_tenant_id and b.party_id = p_distributor_id;
  perform rules.write_statement(p_tenant_id, p_distributor_id, p_open_on);
end
$$;
