-- Events notify a maker or distributor of a change of a coupon, a batch or a business day.
--
-- The event of a redemption or reversal is its ledger entry (008-ledger.sql), because the entry
-- already says who, what and when. So a redemption writes one row and one index entry less. All
-- other events are in core.event.

-- One sequence numbers the events of both tables. The default of event_seq assigns the transaction
-- its ID before it draws a number. By that ID the sequencer knows when a missing number can no
-- longer appear.
create sequence core.event_seq as bigint cache 1;

create function core.event_is_of_its_type(
  p_event_type text, p_coupon_id uuid, p_batch_id int, p_business_date date)
returns boolean
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  return num_nonnulls(p_coupon_id, p_batch_id, p_business_date) = 1 and case
    when p_coupon_id is not null
      then p_event_type in ('coupon.expired', 'coupon.voided')
    when p_batch_id is not null then p_event_type in ('batch.generated', 'allocation.completed')
    else p_event_type = 'reconciliation.ready'
  end;
end
$$;
comment on function core.event_is_of_its_type(text, uuid, int, date) is
  'Check: an event is about one coupon, one batch or one business day, and its type fits that.';

create table core.event (
  tenant_id      int          not null,
  party_id       int          not null,
  event_seq      bigint       not null default (
    case when pg_current_xact_id() is not null then nextval('core.event_seq') end),
  occurred_at    core.finite_time not null,
  recorded_at    core.finite_time not null,
  event_id       uuid         not null,
  coupon_id      uuid,
  batch_id       int,
  business_date  date,
  event_type     text         not null,
  primary key (event_id, tenant_id),
  unique (event_seq),
  constraint event_is_of_its_type
    check (core.event_is_of_its_type(event_type, coupon_id, batch_id, business_date))
);
comment on table core.event is
  'Events, each written by the transaction that caused it. Never changed. Those of redemptions and '
  'reversals are core.ledger_entry; the view event of the schema rules has both.';
comment on column core.event.party_id is 'The recipient: maker or distributor.';
comment on column core.event.event_seq is
  'Drawn while the coupon''s row lock is held, so the events of a coupon are in order. Has gaps.';
comment on column core.event.event_id is
  'UUIDv7. Outside the database: evt_ and 26 characters.';

-- For the events of a coupon. Those of its redemptions and reversals have the IDs of these.
create index event_of_coupon on core.event (coupon_id) where coupon_id is not null;

-- For the events of a time. Coupon events are found in their feed.
create index event_of_batch_or_day on core.event (tenant_id, party_id, recorded_at)
where coupon_id is null;

-- Also serves the invariant voided_event_has_voided_coupon.
create unique index coupon_is_voided_once on core.event (coupon_id, tenant_id)
where event_type = 'coupon.voided';

alter sequence core.event_seq owned by core.event.event_seq;

create function core.check_events() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_last   bigint := coalesce(pg_sequence_last_value('core.event_seq'), 0);
  v_wrong  uuid;
begin
  select n.event_id into v_wrong from new_event n where n.event_seq > v_last;
  if found then
    raise exception 'event % has a number that was not drawn yet', v_wrong
      using errcode = 'check_violation', constraint = 'event_number_is_drawn',
            hint = 'Leave the number to its default.';
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
    raise exception 'event % does not match its party or its coupon, or is in the future', v_wrong
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
    raise exception 'event % has the number or the ID of a ledger entry', v_wrong
      using errcode = 'unique_violation', constraint = 'event_is_in_one_table',
            hint = 'Leave the number to its default.';
  end if;
  return null;
end
$$;
comment on function core.check_events() is
  'Trigger: the subject of an event exists and a coupon has the status of its event; the event is '
  'for its maker or distributor and not in the future, its number was drawn, and no ledger entry '
  'has its number or ID.';

create trigger event_is_for_whom_it_concerns
after insert on core.event
referencing new table as new_event
for each statement execute function core.check_events();

create trigger event_is_immutable before update or delete or truncate on core.event
for each statement execute function core.refuse_change();
