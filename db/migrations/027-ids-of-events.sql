-- Messages about events and ledger entries name them by their external IDs, see 026-external-ids.

create or replace function core.check_events() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_last   bigint := coalesce(pg_sequence_last_value('core.event_seq'), 0);
  v_high   bigint := (select s.high_seq from core.sequencer s where s.is_only);
  v_wrong  uuid;
begin
  select n.event_id into v_wrong from new_event n where n.event_seq > v_last;
  if found then
    raise exception 'event % has a number that was not drawn yet',
      core.format_id('evt', v_wrong)
      using errcode = 'check_violation', constraint = 'event_number_is_drawn',
            hint = 'Leave the number to its default.';
  end if;
  select n.event_id into v_wrong
  from new_event n
  where n.event_seq <= v_high
    and not exists (select from core.event_gap g where g.event_seq = n.event_seq)
    and not exists (select from core.ledger_entry l where l.event_seq = n.event_seq);
  if found then
    raise exception 'event % has a number that the sequencer has passed',
      core.format_id('evt', v_wrong)
      using errcode = 'check_violation', constraint = 'event_number_is_not_passed',
            hint = 'Leave the number to its default; the next calls bring the sequence forward.';
  end if;
  select n.event_id into v_wrong
  from new_event n
  left join core.coupon c on c.tenant_id = n.tenant_id and c.coupon_id = n.coupon_id
  left join core.batch b
    on b.tenant_id = n.tenant_id and b.batch_id = coalesce(n.batch_id, c.batch_id)
  where n.recorded_at > clock_timestamp() + interval '1 day' or (case
      when n.business_date is not null then exists (
        select from core.party p where p.tenant_id = n.tenant_id and p.party_id = n.party_id)
      when n.batch_id is not null then n.party_id in (b.maker_id, b.distributor_id)
      else n.party_id = b.distributor_id and c.status = case n.event_type
        when 'coupon.expired' then 'EXPIRED'
        else 'VOIDED'
      end
    end) is not true;
  if found then
    raise exception 'event % does not match its party or its coupon, or is in the future',
      core.format_id('evt', v_wrong)
      using errcode = 'foreign_key_violation', constraint = 'event_is_for_whom_it_concerns',
            hint = 'Write the coupon''s status, the batch or the day of the event first.';
  end if;
  select n.event_id into v_wrong
  from new_event n
  where exists (select from core.ledger_entry l where l.event_seq = n.event_seq)
     or exists (
       select
       from core.ledger_entry l
       where l.tenant_id = n.tenant_id and l.entry_id = n.event_id);
  if found then
    raise exception 'event % has the number or the ID of a ledger entry',
      core.format_id('evt', v_wrong)
      using errcode = 'unique_violation', constraint = 'event_is_in_one_table',
            hint = 'Leave the number to its default.';
  end if;
  return null;
end
$$;

create or replace function core.check_ledger() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_last   bigint := coalesce(pg_sequence_last_value('core.event_seq'), 0);
  v_high   bigint := (select s.high_seq from core.sequencer s where s.is_only);
  v_wrong  record;
begin
  select n.tenant_id, n.entry_id, n.event_seq, core.format_id('led', n.entry_id) as id into v_wrong
  from new_entry n
  where n.recorded_at > clock_timestamp() + interval '1 day'
     or n.event_seq > v_last
     or (n.event_seq <= v_high
         and (select g.event_seq from core.event_gap g where g.event_seq = n.event_seq) is null)
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
     or n.coupon_id is distinct from (
       select r.coupon_id
       from core.redemption r
       where r.tenant_id = n.tenant_id
         and r.redemption_id = case n.entry_type
           when 'REDEMPTION' then n.entry_id
           else core.find_reversed_redemption(n.tenant_id, n.entry_id)
         end
         and r.currency = n.currency
         and case n.entry_type
           when 'REDEMPTION' then r.status in ('REDEEMED', 'REVERSED')
             and n.amount_minor = r.discount_minor and n.occurred_at = r.redeemed_at
           else r.status = 'REVERSED'
             and n.amount_minor = -r.discount_minor and n.occurred_at = r.ended_at
         end);
  if not found then
    return null;
  elsif v_wrong.event_seq > v_last then
    raise exception 'ledger entry % has a number that was not drawn yet', v_wrong.id
      using errcode = 'check_violation', constraint = 'event_number_is_drawn',
            hint = 'Leave the number to its default.';
  elsif exists (
    select
    from core.event e
    where e.event_seq = v_wrong.event_seq
       or (e.tenant_id = v_wrong.tenant_id and e.event_id = v_wrong.entry_id))
  then
    raise exception 'ledger entry % has the number or the ID of another event', v_wrong.id
      using errcode = 'unique_violation', constraint = 'event_is_in_one_table',
            hint = 'Leave the number to its default, and make a new ID.';
  elsif v_wrong.event_seq <= v_high and not exists (
    select from core.event_gap g where g.event_seq = v_wrong.event_seq)
  then
    raise exception 'ledger entry % has a number that the sequencer has passed', v_wrong.id
      using errcode = 'check_violation', constraint = 'event_number_is_not_passed',
            hint = 'Leave the number to its default; the next calls bring the sequence forward.';
  end if;
  raise exception 'ledger entry % does not match its redemption or distributor', v_wrong.id
    using errcode = 'check_violation', constraint = 'ledger_agrees_with_the_redemption',
          hint = 'Write the redemption and the reversal first.';
end
$$;
