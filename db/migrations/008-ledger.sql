-- The ledger: one entry for each movement of money. It is also the event of its redemption or
-- reversal (007-events.sql).

create domain core.entry_type as text
  constraint entry_type_is_known check (value in ('REDEMPTION', 'REVERSAL'));
comment on domain core.entry_type is
  'The kind of a ledger entry. core.check_ledger checks the sign of its amount.';

create table core.ledger_entry (
  tenant_id       int          not null,
  distributor_id  int          not null,
  amount_minor    bigint       not null,
  event_seq       bigint       not null default (
    case when pg_current_xact_id() is not null then nextval('core.event_seq') end),
  occurred_at     core.finite_time not null,
  recorded_at     core.finite_time not null,
  entry_id        uuid         not null,
  coupon_id       uuid         not null,
  entry_type      core.entry_type not null,
  currency        text         not null,
  primary key (entry_id, tenant_id),
  unique (event_seq)
);
comment on table core.ledger_entry is
  'Movements of money, and their events: coupon.redeemed or coupon.reversed. Never changed. Shop, '
  'store and order are in the redemption, which keeps them fixed.';
comment on column core.ledger_entry.distributor_id is
  'The distributor of the batch. The entry is in its statement, and its event is for it.';
comment on column core.ledger_entry.amount_minor is 'In minor units, negative for a reversal.';
comment on column core.ledger_entry.event_seq is
  'The number of the event, see core.event.event_seq.';
comment on column core.ledger_entry.entry_id is
  'The id of the redemption or reversal, so each is entered only once. Outside the database: '
  'led_ or, as the event, evt_ and 26 characters. core.reversal names the redemption that a '
  'reversal ends.';

create index ledger_entry_by_time on core.ledger_entry (recorded_at);

-- A function, because only reversals need this lookup. As part of the plan below, it would cost
-- every redemption.
create function core.find_reversed_redemption(p_tenant_id int, p_reversal_id uuid) returns uuid
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return (
    select v.redemption_id
    from core.reversal v
    where v.tenant_id = p_tenant_id and v.reversal_id = p_reversal_id);
end
$$;
comment on function core.find_reversed_redemption(int, uuid) is
  'The redemption that a reversal ended.';

-- Subqueries that return a value: for `exists` PostgreSQL may read a whole table into a hash table,
-- and a join takes longer to start.
create function core.check_ledger() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
  v_last   bigint := coalesce(pg_sequence_last_value('core.event_seq'), 0);
  v_wrong  record;
begin
  select n.tenant_id, n.entry_id, n.event_seq into v_wrong
  from new_entry n
  where n.recorded_at > clock_timestamp() + interval '1 day'
     or n.event_seq > v_last
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
    raise exception 'ledger entry % has a number that was not drawn yet', v_wrong.entry_id
      using errcode = 'check_violation', constraint = 'event_number_is_drawn',
            hint = 'Leave the number to its default.';
  elsif exists (
    select
    from core.event e
    where e.event_seq = v_wrong.event_seq
       or (e.tenant_id = v_wrong.tenant_id and e.event_id = v_wrong.entry_id))
  then
    raise exception 'ledger entry % has the number or the ID of another event', v_wrong.entry_id
      using errcode = 'unique_violation', constraint = 'event_is_in_one_table',
            hint = 'Leave the number to its default, and make a new ID.';
  end if;
  raise exception 'ledger entry % does not match its redemption or distributor', v_wrong.entry_id
    using errcode = 'check_violation', constraint = 'ledger_agrees_with_the_redemption',
          hint = 'Write the redemption and the reversal first.';
end
$$;
comment on function core.check_ledger() is
  'Trigger: a ledger entry matches its redemption or reversal and the distributor of its coupon, '
  'is not in the future, and has a drawn number and an ID that no other event has.';

create trigger ledger_agrees_with_the_redemption
after insert on core.ledger_entry
referencing new table as new_entry
for each statement execute function core.check_ledger();

create trigger ledger_is_immutable before update or delete or truncate on core.ledger_entry
for each statement execute function core.refuse_change();
