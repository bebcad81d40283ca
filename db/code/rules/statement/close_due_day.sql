-- Closes the open business day of a distributor if it is over, and returns whether it did. Returns
-- null if its rows made that fail; the distributor is stuck from then on. The caller holds the
-- sequencer's lock.
create or replace function rules.close_due_day(
  p_tenant_id int, p_distributor_id int, p_now timestamptz)
returns boolean
language plpgsql volatile as $$
declare
  v_book    record;
  v_date    date;
  v_reason  text;
begin
  select b.open_on, p.time_zone into v_book
  from core.ledger_book b
  join core.party p on p.tenant_id = b.tenant_id and p.party_id = b.party_id
  where b.tenant_id = p_tenant_id and b.party_id = p_distributor_id;
  v_date := rules.find_due_date(v_book.open_on, p_now, v_book.time_zone);
  if v_date is null then
    return false;
  end if;
  perform rules.close_day(
    p_tenant_id, p_distributor_id, v_date,
    rules.find_next_business_date(v_date, v_book.time_zone));
  return true;
exception when data_exception or integrity_constraint_violation then
  get stacked diagnostics v_reason = message_text;
  perform rules.note_stuck_work('events', p_tenant_id, p_distributor_id, null, v_reason);
  return null;
end
$$;
