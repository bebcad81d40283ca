-- POST /v1/sandbox/close_day closes the open business day of a distributor now, instead of after
-- its end. What was answered before this call is in its statement, and later entries go to the next
-- day, also while that one is ahead of the calendar. The worker makes the statement as usual.
-- Variant B: the day of the calling party. Variant A: of the distributor that the call names, or of
-- the only one.
create or replace function api.close_day(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_named    text := p_call.args ->> 'distributor';
  v_book     record;
  v_next_on  date;
begin
  -- decide: before anything waits
  if not (select t.is_sandbox from core.tenant t where t.tenant_id = p_call.tenant_id) then
    return rules.refuse(p_call, 'NOT_A_SANDBOX');
  end if;

  -- lock rows
  if not rules.hold_sequencer(p_call) then
    return rules.hand_back();
  end if;

  -- decide
  select p.party_id, p.external_id, p.time_zone, b.open_on, count(*) over () as books
    into v_book
  from core.ledger_book b
  join core.party p on p.tenant_id = b.tenant_id and p.party_id = b.party_id
  where b.tenant_id = p_call.tenant_id
    and (p_call.variant = 'A' or b.party_id = p_call.caller_id)
    and (v_named is null or p.external_id = v_named);
  if v_book.books is null then
    return rules.refuse_not_found(p_call, 'distributor');
  elsif v_book.books > 1 then
    return rules.refuse(p_call, 'AMBIGUOUS_DISTRIBUTOR');
  elsif exists (
    select
    from core.stuck_work s
    where s.tenant_id = p_call.tenant_id and s.party_id = v_book.party_id and s.work = 'events')
  then
    return rules.hand_back();
  end if;

  -- write
  v_next_on := rules.find_next_business_date(v_book.open_on, v_book.time_zone);
  perform rules.close_day(p_call.tenant_id, v_book.party_id, v_book.open_on, v_next_on);

  -- answer
  return rules.succeed(format(
    '{"ok":true,"distributor_party_id":"%s","business_date":"%s","next_business_date":"%s"}',
    v_book.external_id, to_char(v_book.open_on, 'YYYY-MM-DD'), to_char(v_next_on, 'YYYY-MM-DD')));
end
$$;
