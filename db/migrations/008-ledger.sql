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

-- A function, because only reversals need this lookup. A join in the plan below would cost every
-- redemption.
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

create function core.check_ledger() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_wrong  record;
begin
  select n.entry_id, e.event_id is not null or same.event_id is not null as is_event into v_wrong
  from new_entry n
  left join core.redemption r
    on r.tenant_id = n.tenant_id
       and r.redemption_id = case n.entry_type
         when 'REDEMPTION' then n.entry_id
         else core.find_reversed_redemption(n.tenant_id, n.entry_id)
       end
  left join core.coupon c on c.tenant_id = n.tenant_id and c.coupon_id = n.coupon_id
  left join core.batch b on b.tenant_id = n.tenant_id and b.batch_id = c.batch_id
  left join core.event e on e.event_seq = n.event_seq
  left join core.event same on same.event_id = n.entry_id and same.tenant_id = n.tenant_id
  where e.event_id is not null
     or same.event_id is not null
     or n.recorded_at > clock_timestamp() + interval '1 day'
     or (n.currency = r.currency
         and n.coupon_id = r.coupon_id
         and n.distributor_id = b.distributor_id
         and case n.entry_type
           when 'REDEMPTION' then r.status in ('REDEEMED', 'REVERSED')
             and n.amount_minor = r.discount_minor and n.occurred_at = r.redeemed_at
           else r.status = 'REVERSED'
             and n.amount_minor = -r.discount_minor and n.occurred_at = r.ended_at
         end) is not true;
  if not found then
    return null;
  elsif v_wrong.is_event then
    raise exception 'ledger entry % has the number or the ID of another event', v_wrong.entry_id
      using errcode = 'unique_violation', constraint = 'event_is_in_one_table',
            hint = 'Leave the number to its default, and make a new ID.';
  else
    raise exception 'ledger entry % does not match its redemption or distributor', v_wrong.entry_id
      using errcode = 'check_violation', constraint = 'ledger_agrees_with_the_redemption',
            hint = 'Write the redemption and the reversal first.';
  end if;
end
$$;
comment on function core.check_ledger() is
  'Trigger: a ledger entry matches its redemption or reversal and the distributor of its coupon, '
  'is not in the future, and has a number and an ID that no other event has.';

create trigger ledger_agrees_with_the_redemption
after insert on core.ledger_entry
referencing new table as new_entry
for each statement execute function core.check_ledger();

create trigger ledger_is_immutable before update or delete or truncate on core.ledger_entry
for each statement execute function core.refuse_change();
