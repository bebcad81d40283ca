-- The ledger: one entry for each movement of money.

create domain core.entry_type as text
  constraint entry_type_is_known check (value in ('REDEMPTION', 'REVERSAL'));
comment on domain core.entry_type is
  'The kind of a ledger entry. core.check_ledger checks the sign of its amount.';

create table core.ledger_entry (
  tenant_id       int          not null,
  distributor_id  int          not null,
  amount_minor    bigint       not null,
  recorded_at     core.finite_time not null,
  entry_id        uuid         not null,
  entry_type      core.entry_type not null,
  currency        text         not null,
  primary key (entry_id, tenant_id)
);
comment on table core.ledger_entry is
  'Movements of money, never changed. Store, order and time are in the redemption or reversal, '
  'which keeps them fixed.';
comment on column core.ledger_entry.distributor_id is
  'The distributor of the batch. The entry is in its statement.';
comment on column core.ledger_entry.amount_minor is 'In minor units, negative for a reversal.';
comment on column core.ledger_entry.entry_id is
  'The id of the redemption or reversal, so each is entered only once. Outside the database: '
  'led_ and 26 characters. core.reversal names the redemption that a reversal ends.';

create index ledger_entry_by_time on core.ledger_entry (recorded_at);

create function core.check_ledger() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_wrong  record;
begin
  select n.entry_id, e.event_id is null as has_no_event into v_wrong
  from new_entry n
  left join core.redemption r
    on r.tenant_id = n.tenant_id
       and r.redemption_id = case n.entry_type
         when 'REDEMPTION' then n.entry_id
         else core.find_reversed_redemption(n.tenant_id, n.entry_id)
       end
  left join core.event e
    on e.tenant_id = n.tenant_id
       and e.event_id = n.entry_id
       and e.event_type = case n.entry_type
         when 'REDEMPTION' then 'coupon.redeemed' else 'coupon.reversed'
       end
       and e.party_id = n.distributor_id
  where e.event_id is null
     or n.recorded_at > clock_timestamp() + interval '1 day'
     or (n.currency = r.currency and case n.entry_type
          when 'REDEMPTION'
            then r.status in ('REDEEMED', 'REVERSED') and n.amount_minor = r.discount_minor
          else r.status = 'REVERSED' and n.amount_minor = -r.discount_minor
        end) is not true;
  if not found then
    return null;
  elsif v_wrong.has_no_event then
    raise exception 'ledger entry % has no event for its distributor', v_wrong.entry_id
      using errcode = 'foreign_key_violation', constraint = 'each_movement_has_its_event',
            hint = 'Write the event first.';
  else
    raise exception 'ledger entry % does not match its redemption', v_wrong.entry_id
      using errcode = 'check_violation', constraint = 'ledger_agrees_with_the_redemption',
            hint = 'Write the redemption and the reversal first.';
  end if;
end
$$;
comment on function core.check_ledger() is
  'Trigger: a ledger entry matches its redemption or reversal, is not in the future, and has its '
  'event for the distributor.';

create trigger ledger_agrees_with_the_redemption
after insert on core.ledger_entry
referencing new table as new_entry
for each statement execute function core.check_ledger();

create trigger ledger_is_immutable before update or delete or truncate on core.ledger_entry
for each statement execute function core.refuse_change();
