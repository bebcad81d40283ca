-- Plans that read what they need, whatever the planner knows of the tables.

-- Lists of batches that are not released: of a maker, and of a template. Batches are few, and an
-- entry lives until the release. Not made online: before 0.1.0 there is no large table.
create index batch_of_maker_is_not_released
on core.batch (maker_id, tenant_id, status, batch_id)
where status <> 'ALLOCATED';
create index batch_of_template_is_not_released
on core.batch (template_id, tenant_id, status, batch_id)
where status <> 'ALLOCATED';

-- As before, but looks up the number and the ID as single values. With exists … or exists, a
-- planner that believes the ledger is small reads all of it once for each of the two.
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
  where (select l.event_seq from core.ledger_entry l where l.event_seq = n.event_seq) is not null
     or (
       select l.entry_id
       from core.ledger_entry l
       where l.tenant_id = n.tenant_id and l.entry_id = n.event_id) is not null;
  if found then
    raise exception 'event % has the number or the ID of a ledger entry',
      core.format_id('evt', v_wrong)
      using errcode = 'unique_violation', constraint = 'event_is_in_one_table',
            hint = 'Leave the number to its default.';
  end if;
  return null;
end
$$;
