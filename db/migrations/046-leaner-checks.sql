-- What each redemption is checked against, with fewer lookups and expressions. A lone call sets up
-- each of them anew, also those that it does not reach. So what few rows need is in functions.
-- What is refused stays the same.

create function core.is_event_gap(p_event_seq bigint) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return exists (select from core.event_gap g where g.event_seq = p_event_seq);
end
$$;
comment on function core.is_event_gap(bigint) is
  'Whether the sequencer has passed this number and waits for its event.';

create function core.find_reversed_coupon(
  p_tenant_id int, p_reversal_id uuid, p_currency text, p_amount_minor bigint,
  p_reversed_at timestamptz)
returns uuid
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return (
    select r.coupon_id
    from core.redemption r
    where r.tenant_id = p_tenant_id
      and r.redemption_id = (
        select v.redemption_id
        from core.reversal v
        where v.tenant_id = p_tenant_id and v.reversal_id = p_reversal_id)
      and r.currency = p_currency
      and r.status = 'REVERSED'
      and r.discount_minor = -p_amount_minor
      and r.ended_at = p_reversed_at);
end
$$;
comment on function core.find_reversed_coupon(int, uuid, text, bigint, timestamptz) is
  'The coupon whose redemption this reversal ended, if it gave back this amount at this time.';

-- As before, but the sequencer is read by the query itself, once, and so with the gaps of the same
-- moment. The status of a redemption follows from its redeemed_at (status_agrees_with_times).
create or replace function core.check_ledger() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_last   bigint := coalesce(pg_sequence_last_value('core.event_seq'), 0);
  v_wrong  record;
  v_id     text;
begin
  select n.tenant_id, n.entry_id, n.event_seq into v_wrong
  from new_entry n
  where n.recorded_at > clock_timestamp() + interval '1 day'
     or n.event_seq > v_last
     or (n.event_seq <= (select s.high_seq from core.sequencer s where s.is_only)
         and not core.is_event_gap(n.event_seq))
     or (select e.event_seq from core.event e where e.event_seq = n.event_seq) is not null
     or (
       select e.event_id
       from core.event e
       where e.tenant_id = n.tenant_id and e.event_id = n.entry_id) is not null
     or n.distributor_id is distinct from (
       select b.distributor_id
       from core.batch b
       where b.tenant_id = n.tenant_id and b.batch_id = (
         select c.batch_id
         from core.coupon c
         where c.tenant_id = n.tenant_id and c.coupon_id = n.coupon_id))
     or n.coupon_id is distinct from case n.entry_type
       when 'REDEMPTION' then (
         select r.coupon_id
         from core.redemption r
         where r.tenant_id = n.tenant_id
           and r.redemption_id = n.entry_id
           and r.currency = n.currency
           and r.discount_minor = n.amount_minor
           and r.redeemed_at = n.occurred_at)
       else core.find_reversed_coupon(
         n.tenant_id, n.entry_id, n.currency, n.amount_minor, n.occurred_at)
     end;
  if not found then
    return null;
  end if;
  v_id := core.format_id('led', v_wrong.entry_id);
  if v_wrong.event_seq > v_last then
    raise exception 'ledger entry % has a number that was not drawn yet', v_id
      using errcode = 'check_violation', constraint = 'event_number_is_drawn',
            hint = 'Leave the number to its default.';
  elsif exists (
    select
    from core.event e
    where e.event_seq = v_wrong.event_seq
       or (e.tenant_id = v_wrong.tenant_id and e.event_id = v_wrong.entry_id))
  then
    raise exception 'ledger entry % has the number or the ID of another event', v_id
      using errcode = 'unique_violation', constraint = 'event_is_in_one_table',
            hint = 'Leave the number to its default, and make a new ID.';
  elsif v_wrong.event_seq <= (select s.high_seq from core.sequencer s where s.is_only)
    and not core.is_event_gap(v_wrong.event_seq)
  then
    raise exception 'ledger entry % has a number that the sequencer has passed', v_id
      using errcode = 'check_violation', constraint = 'event_number_is_not_passed',
            hint = 'Leave the number to its default; the next calls bring the sequence forward.';
  end if;
  raise exception 'ledger entry % does not match its redemption or distributor', v_id
    using errcode = 'check_violation', constraint = 'ledger_agrees_with_the_redemption',
          hint = 'Write the redemption and the reversal first.';
end
$$;
