-- Money: redemptions, their reversals, the ledger, and the events that tell of them.
-- In the tables that grow with each redemption, columns that are aligned to eight bytes come first: nothing is padded.
-- Their check constraints are short, the longer ones a call: PostgreSQL reads the stored tree of each anew for each
-- statement that writes.

create function core.status_agrees_with_times(
  p_status text, p_started_at timestamptz, p_lock_expires_at timestamptz, p_redeemed_at timestamptz,
  p_ended_at timestamptz)
returns boolean
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  return case
    when p_lock_expires_at - p_started_at > interval '7 days' then false
    when p_redeemed_at is not null then p_status = case when p_ended_at is null then 'REDEEMED' else 'REVERSED' end
    when p_lock_expires_at is null then false
    when p_ended_at is null then p_status = 'LOCKED'
    else p_status in ('CANCELLED', 'LAPSED')
  end;
end
$$;
comment on function core.status_agrees_with_times(text, timestamptz, timestamptz, timestamptz, timestamptz) is
  'Check: what a redemption has become agrees with when; a lock has an end, within 7 days.';

create table core.redemption (
  tenant_id        int          not null,
  merchant_id      int          not null,
  discount_minor   core.minor_units not null,
  order_minor      core.minor_units,
  started_at       core.finite_time not null,
  lock_expires_at  core.finite_time,
  redeemed_at      core.finite_time,
  ended_at         core.finite_time,
  redemption_id    uuid         not null,
  coupon_id        uuid         not null,
  caller_id        int          not null,
  lock_request_id  core.client_key not null,
  status           text         not null,
  currency         text         not null,
  store            text,
  terminal         text,
  order_id         text,
  primary key (redemption_id, tenant_id),
  constraint status_agrees_with_times
    check (core.status_agrees_with_times(status, started_at, lock_expires_at, redeemed_at, ended_at)),
  constraint discount_is_within_order check (discount_minor <= order_minor)
) with (fillfactor = 90);
comment on table core.redemption is 'One row a lock or redeem that was granted, with what became of it.';
comment on column core.redemption.redemption_id is 'UUIDv7; outside: red_ and 26 characters.';
comment on column core.redemption.caller_id is 'Who locked: the party in Variant B, 0 in A. Only the same caller confirms or cancels.';
comment on column core.redemption.lock_request_id is 'request_id of the lock or redeem call.';
comment on column core.redemption.status is 'As last written. LOCKED past lock_expires_at counts as LAPSED at once.';
comment on column core.redemption.lock_expires_at is 'Null: redeemed in one step.';
comment on column core.redemption.ended_at is 'When it was reversed, cancelled, or found lapsed.';

-- The law of the house: one live lock or redemption a coupon, whatever anybody runs. Those that have ended are told
-- apart by their end, so this one index also finds all redemptions of a coupon. Here and in the primary key the tenant
-- stands last: an index that begins with it would do for either, and a plan made while the table is empty takes any.
create unique index coupon_has_one_live_redemption on core.redemption (coupon_id, tenant_id, ended_at) nulls not distinct;
create index lock_is_live on core.redemption (lock_expires_at) where status = 'LOCKED';

create table core.reversal (
  tenant_id      int          not null,
  reversal_id    uuid         not null,
  redemption_id  uuid         not null,
  caller_id      int          not null,
  reason         text,
  reversed_at    core.finite_time not null,
  primary key (reversal_id, tenant_id),
  constraint redemption_is_reversed_once unique (redemption_id, tenant_id),
  foreign key (tenant_id, redemption_id) references core.redemption (tenant_id, redemption_id)
);
comment on table core.reversal is 'The full reversal of a redemption.';
comment on column core.reversal.reversal_id is 'UUIDv7; outside: rvs_ and 26 characters.';

create table core.voiding (
  tenant_id    int          not null,
  coupon_id    uuid         not null,
  merchant_id  int,
  caller_id    int          not null,
  reason       text,
  voided_at    core.finite_time not null,
  primary key (tenant_id, coupon_id),
  foreign key (tenant_id, coupon_id) references core.coupon
);
comment on table core.voiding is 'Why and by whom a coupon was voided. No merchant: by an administrator.';

-- One number line for all events. The default makes sure that a transaction has its own id before it draws a
-- number: the sequencer tells by that id when a missing number can no longer appear.
create sequence core.event_seq as bigint cache 1;

create function core.event_is_of_its_type(p_event_type text, p_coupon_id uuid, p_batch_id int, p_business_date date)
returns boolean
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  return num_nonnulls(p_coupon_id, p_batch_id, p_business_date) = 1 and case
    when p_coupon_id is not null
      then p_event_type in ('coupon.redeemed', 'coupon.reversed', 'coupon.expired', 'coupon.voided')
    when p_batch_id is not null then p_event_type in ('batch.generated', 'allocation.completed')
    else p_event_type = 'reconciliation.ready'
  end;
end
$$;
comment on function core.event_is_of_its_type(text, uuid, int, date) is
  'Check: an event is of one thing, a coupon, a batch or a day, and of a type that such a thing has.';

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
  primary key (tenant_id, event_id),
  unique (event_seq),
  constraint event_is_of_its_type
    check (core.event_is_of_its_type(event_type, coupon_id, batch_id, business_date))
);
comment on table core.event is 'What happened, written by the transaction in which it happened. Never changed.';
comment on column core.event.event_id is
  'UUIDv7; outside: evt_ and 26 characters. Of a redemption or reversal: its own id, as that of its ledger entry.';
comment on column core.event.event_seq is 'Taken while the coupon''s row lock is held, so events of one coupon are in their order. Has gaps.';
comment on column core.event.party_id is 'Whom it is for: maker or distributor.';

alter sequence core.event_seq owned by core.event.event_seq;

create domain core.entry_type as text
  constraint entry_type_is_known check (value in ('REDEMPTION', 'REVERSAL'));
comment on domain core.entry_type is 'What a movement of money is. Its sign follows: core.check_ledger.';

create table core.ledger_entry (
  tenant_id       int          not null,
  distributor_id  int          not null,
  amount_minor    bigint       not null,
  recorded_at     core.finite_time not null,
  entry_id        uuid         not null,
  entry_type      core.entry_type not null,
  currency        text         not null,
  primary key (tenant_id, entry_id)
);
comment on table core.ledger_entry is 'Immutable money movements. What is not here (shop, order, when it happened) is in the redemption or the reversal, which keep it fixed.';
comment on column core.ledger_entry.entry_id is
  'The redemption''s or the reversal''s own id, so that each can be entered only once; outside: led_ and 26 characters. Which redemption a reversal ends is in core.reversal.';
comment on column core.ledger_entry.distributor_id is 'Whose statement it belongs to: the distributor of the batch.';
comment on column core.ledger_entry.amount_minor is 'Minor units; negative for a reversal.';

create function core.check_redemption_terms() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.redemption_id, new.coupon_id, new.merchant_id, new.caller_id, new.lock_request_id,
      new.currency, new.discount_minor, new.order_minor, new.store, new.terminal, new.order_id, new.started_at)
     is distinct from
     (old.tenant_id, old.redemption_id, old.coupon_id, old.merchant_id, old.caller_id, old.lock_request_id,
      old.currency, old.discount_minor, old.order_minor, old.store, old.terminal, old.order_id, old.started_at)
     or (old.redeemed_at is not null and new.redeemed_at is distinct from old.redeemed_at)
     or (old.ended_at is not null and new.ended_at is distinct from old.ended_at)
  then
    raise exception 'redemption %: what was granted is fixed', old.redemption_id
      using errcode = 'check_violation', constraint = 'redemption_terms_are_fixed';
  end if;
  return new;
end
$$;
comment on function core.check_redemption_terms() is 'Trigger: terms of a redemption are fixed, and when it was redeemed and ended.';

create trigger redemption_terms_are_fixed
before update of tenant_id, redemption_id, coupon_id, merchant_id, caller_id, lock_request_id, currency, discount_minor,
  order_minor, store, terminal, order_id, started_at, redeemed_at, ended_at on core.redemption
for each row execute function core.check_redemption_terms();

create function core.check_redemption_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.status <> old.status and not (case old.status
       when 'LOCKED' then new.status in ('REDEEMED', 'CANCELLED', 'LAPSED')
       when 'REDEEMED' then new.status = 'REVERSED'
       else false
     end)
  then
    raise exception 'redemption %: from % to % is no legal transition', old.redemption_id, old.status, new.status
      using errcode = 'check_violation', constraint = 'redemption_transition_is_legal';
  end if;
  return new;
end
$$;
comment on function core.check_redemption_change() is 'Trigger: transitions of a redemption are legal.';

create trigger redemption_transition_is_legal
before update of status on core.redemption
for each row execute function core.check_redemption_change();

-- Asked for few coupons. As a part of the plan below it would cost each redemption.
create function core.has_no_live_redemption_any_more(p_tenant_id int, p_coupon_id uuid, p_status text) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return case p_status
    when 'REDEEMED' then exists (
      select
      from core.redemption r
      where r.coupon_id = p_coupon_id and r.tenant_id = p_tenant_id and r.status = 'REVERSED')
    when 'VOIDED' then exists (
      select from core.voiding v where v.tenant_id = p_tenant_id and v.coupon_id = p_coupon_id)
    else false
  end;
end
$$;
comment on function core.has_no_live_redemption_any_more(int, uuid, text) is
  'Whether a coupon without a live redemption may be REDEEMED (it was reversed) or VOIDED (it was voided).';

-- Coupon, redemption and ledger tell the same story. A statement that writes some of it is looked at when it ends, all
-- rows at once; so a new redemption comes in one statement with its coupon's status, its event and its ledger entry. What
-- changes later in several statements is looked at again at commit: then it is security definer, because by then the
-- function that wrote is over and the session's own role may read no table.
create function core.check_coupons() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
declare
  v_wrong  record;
begin
  select n.coupon_id, n.status, r.status as live into v_wrong
  from new_coupon n
  left join core.redemption r
    on r.coupon_id = n.coupon_id and r.tenant_id = n.tenant_id and r.status in ('LOCKED', 'REDEEMED')
  where not case
      when r.status is not null then n.status = r.status
      when n.status in ('ISSUED', 'EXPIRED') then true
      else core.has_no_live_redemption_any_more(n.tenant_id, n.coupon_id, n.status)
    end;
  if found then
    raise exception 'coupon % is %, its live redemption %', v_wrong.coupon_id, v_wrong.status, coalesce(v_wrong.live, 'none')
      using errcode = 'check_violation', constraint = 'coupon_agrees_with_its_redemptions',
            hint = 'Write the redemption or the voiding first.';
  end if;
  return null;
end
$$;
comment on function core.check_coupons() is 'Trigger: status of a coupon agrees with its redemptions.';

create trigger coupon_agrees_with_its_redemptions
after update on core.coupon
referencing new table as new_coupon
for each statement execute function core.check_coupons();

-- The other way round is checked with the coupon; a voided coupon never comes back. The merchant has no foreign key, so that
-- who holds a merchant's row keeps no till waiting; merchants are never deleted.
create function core.check_voiding() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (
    select
    from core.coupon c
    where c.tenant_id = new.tenant_id and c.coupon_id = new.coupon_id and c.status = 'VOIDED')
  then
    raise exception 'coupon % has a voiding and is not VOIDED', new.coupon_id
      using errcode = 'check_violation', constraint = 'voiding_agrees_with_its_coupon';
  elsif new.merchant_id is not null and not exists (
    select from core.merchant m where m.tenant_id = new.tenant_id and m.merchant_id = new.merchant_id)
  then
    raise exception 'the voiding of coupon % has no merchant', new.coupon_id
      using errcode = 'foreign_key_violation', constraint = 'voiding_is_at_a_merchant';
  end if;
  return null;
end
$$;
comment on function core.check_voiding() is 'Deferred trigger: a coupon with a voiding is VOIDED; its merchant is there.';

create constraint trigger voiding_agrees_with_its_coupon
after insert on core.voiding
deferrable initially deferred
for each row execute function core.check_voiding();

create function core.check_redemption_state() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
declare
  v_is  record;
begin
  -- nearly always it is this: written live, and nothing has ended it since
  if tg_table_name = 'redemption' then
    select r.status, r.discount_minor, c.status as coupon_status, entry.amount_minor as entered into v_is
    from core.redemption r
    join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
    left join core.ledger_entry entry
      on entry.tenant_id = r.tenant_id and entry.entry_id = r.redemption_id and entry.currency = r.currency
    where r.redemption_id = new.redemption_id and r.tenant_id = new.tenant_id;
    if v_is.status = v_is.coupon_status and (
      (v_is.status = 'REDEEMED' and v_is.entered = v_is.discount_minor)
      or (v_is.status = 'LOCKED' and v_is.entered is null))
    then
      return null;
    end if;
  end if;

  select r.status, r.discount_minor, r.coupon_id, c.status as coupon_status, live.status as live,
         entry.amount_minor as entered, v.reversal_id, v.reversed_at = r.ended_at as ended_then, back.amount_minor as returned
    into v_is
  from core.redemption r
  join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
  left join core.redemption live
    on live.coupon_id = r.coupon_id and live.tenant_id = r.tenant_id and live.status in ('LOCKED', 'REDEEMED')
  left join core.ledger_entry entry
    on entry.tenant_id = r.tenant_id and entry.entry_id = r.redemption_id and entry.currency = r.currency
  left join core.reversal v on v.tenant_id = r.tenant_id and v.redemption_id = r.redemption_id
  left join core.ledger_entry back
    on back.tenant_id = v.tenant_id and back.entry_id = v.reversal_id and back.currency = r.currency
  where r.redemption_id = new.redemption_id and r.tenant_id = new.tenant_id;

  if not (case
       when v_is.coupon_status in ('LOCKED', 'REDEEMED') and v_is.live is not null
         then v_is.coupon_status = v_is.live
       when v_is.live is not null or v_is.coupon_status = 'LOCKED' then false
       when v_is.coupon_status = 'REDEEMED' then exists (
         select
         from core.redemption e
         where e.coupon_id = v_is.coupon_id and e.tenant_id = new.tenant_id and e.status = 'REVERSED')
       else true
     end)
  then
    raise exception 'coupon % is %, its live redemption %', v_is.coupon_id, v_is.coupon_status, coalesce(v_is.live, 'none')
      using errcode = 'check_violation', constraint = 'coupon_agrees_with_its_redemptions';
  end if;
  if (case v_is.status
       when 'REDEEMED' then v_is.entered = v_is.discount_minor and v_is.reversal_id is null
       when 'REVERSED' then v_is.entered = v_is.discount_minor and v_is.returned = -v_is.discount_minor and v_is.ended_then
       else v_is.entered is null and v_is.reversal_id is null
     end) is not true
  then
    raise exception 'redemption % is % of %, with ledger entries of % and %', new.redemption_id,
      v_is.status, v_is.discount_minor, coalesce(v_is.entered, 0), coalesce(v_is.returned, 0)
      using errcode = 'check_violation', constraint = 'redemption_agrees_with_the_ledger';
  end if;
  return null;
end
$$;
comment on function core.check_redemption_state() is
  'Deferred trigger: a redemption agrees with its coupon, and has exactly the ledger entries its status calls for.';

create constraint trigger redemption_agrees_with_the_ledger
after update of status on core.redemption
deferrable initially deferred
for each row execute function core.check_redemption_state();

-- A live one is looked at by core.check_redemptions.
create constraint trigger ended_redemption_agrees_with_the_ledger
after insert on core.redemption
deferrable initially deferred
for each row when (new.ended_at is not null)
execute function core.check_redemption_state();

create constraint trigger reversal_agrees_with_the_ledger
after insert on core.reversal
deferrable initially deferred
for each row execute function core.check_redemption_state();

-- What redemptions, events and ledger entries refer to is looked at once a statement, and has to be the right row and
-- not just a row. Foreign keys would ask for each reference of each row, and lock what it refers to: half of the
-- time of a redemption and a third of its log. They would see no more: what is referred to is never deleted, and its
-- key never changes.
create function core.check_redemptions() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
declare
  c_hint     constant text := 'Write the coupon''s status, the event and the ledger entry in the same statement.';
  v_is_held  boolean := false;
  v_wrong    record;
begin
  -- Who wrote a coupon's row in this transaction holds it: nearly always that is who writes the redemption. Else it is
  -- taken now, before somebody else changes it, and looked at again.
  loop
    select n.redemption_id, n.status, c.status as coupon_status, m.merchant_id, e.amount_minor as entered into v_wrong
    from new_redemption n
    left join core.coupon c on c.tenant_id = n.tenant_id and c.coupon_id = n.coupon_id
    left join core.merchant m on m.tenant_id = n.tenant_id and m.merchant_id = n.merchant_id
    left join core.ledger_entry e on e.tenant_id = n.tenant_id and e.entry_id = n.redemption_id
    where m.merchant_id is null
       or (not v_is_held and c.xmin <> pg_current_xact_id()::xid)
       or (case n.status
            when 'LOCKED' then c.status = 'LOCKED' and e.amount_minor is null
            when 'REDEEMED' then c.status = 'REDEEMED' and e.amount_minor = n.discount_minor
            else c.coupon_id is not null
          end) is not true;
    if not found then
      return null;
    end if;
    exit when v_is_held;
    perform
    from new_redemption n
    join core.coupon c on c.tenant_id = n.tenant_id and c.coupon_id = n.coupon_id
    for no key update of c;
    v_is_held := true;
  end loop;
  if v_wrong.coupon_status is null or v_wrong.merchant_id is null then
    raise exception 'redemption % has no coupon or no merchant', v_wrong.redemption_id
      using errcode = 'foreign_key_violation', constraint = 'redemption_is_of_a_coupon_at_a_merchant';
  elsif v_wrong.coupon_status <> v_wrong.status then
    raise exception 'redemption % is %, its coupon %', v_wrong.redemption_id, v_wrong.status, v_wrong.coupon_status
      using errcode = 'check_violation', constraint = 'coupon_agrees_with_its_redemptions', hint = c_hint;
  else
    raise exception 'redemption % is %, with a ledger entry of %', v_wrong.redemption_id, v_wrong.status, coalesce(v_wrong.entered, 0)
      using errcode = 'check_violation', constraint = 'redemption_agrees_with_the_ledger', hint = c_hint;
  end if;
end
$$;
comment on function core.check_redemptions() is
  'Trigger: coupon and merchant of a redemption are there, and a live one agrees with its coupon and the ledger.';

create trigger redemption_is_of_a_coupon_at_a_merchant
after insert on core.redemption
referencing new table as new_redemption
for each statement execute function core.check_redemptions();

-- Asked for reversals only. As a join of the plans below it would cost each redemption.
create function core.find_reversed_redemption(p_tenant_id int, p_reversal_id uuid) returns uuid
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return (
    select v.redemption_id from core.reversal v where v.tenant_id = p_tenant_id and v.reversal_id = p_reversal_id);
end
$$;
comment on function core.find_reversed_redemption(int, uuid) is 'The redemption that a reversal ended.';

create function core.check_events() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
declare
  v_wrong  uuid;
begin
  select n.event_id into v_wrong
  from new_event n
  left join core.coupon c on c.tenant_id = n.tenant_id and c.coupon_id = n.coupon_id
  left join core.batch b on b.tenant_id = n.tenant_id and b.batch_id = coalesce(n.batch_id, c.batch_id)
  left join core.redemption r
    on r.tenant_id = n.tenant_id
       and r.redemption_id = case n.event_type
         when 'coupon.redeemed' then n.event_id
         when 'coupon.reversed' then core.find_reversed_redemption(n.tenant_id, n.event_id)
       end
  where (case
      when n.business_date is not null then exists (
        select from core.party p where p.tenant_id = n.tenant_id and p.party_id = n.party_id)
      when n.batch_id is not null then n.party_id in (b.maker_id, b.distributor_id)
      when n.event_type in ('coupon.redeemed', 'coupon.reversed')
        then n.party_id = b.distributor_id and r.coupon_id = n.coupon_id
      else n.party_id = b.distributor_id
    end) is not true;
  if found then
    raise exception 'event % is not of its party, or not of its coupon', v_wrong
      using errcode = 'foreign_key_violation', constraint = 'event_is_for_whom_it_concerns',
            hint = 'Write what it tells of first.';
  end if;
  return null;
end
$$;
comment on function core.check_events() is
  'Trigger: what an event tells of is there, and it is for the maker or distributor of that.';

create trigger event_is_for_whom_it_concerns
after insert on core.event
referencing new table as new_event
for each statement execute function core.check_events();

create function core.check_ledger() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
declare
  v_wrong  record;
begin
  select n.entry_id, e.event_id is null as is_untold into v_wrong
  from new_entry n
  left join core.redemption r
    on r.tenant_id = n.tenant_id
       and r.redemption_id = case n.entry_type
         when 'REDEMPTION' then n.entry_id else core.find_reversed_redemption(n.tenant_id, n.entry_id)
       end
  left join core.event e
    on e.tenant_id = n.tenant_id
       and e.event_id = n.entry_id
       and e.event_type = case n.entry_type when 'REDEMPTION' then 'coupon.redeemed' else 'coupon.reversed' end
       and e.party_id = n.distributor_id
  where e.event_id is null
     or n.recorded_at > clock_timestamp() + interval '1 day'
     or (n.currency = r.currency and case n.entry_type
          when 'REDEMPTION' then r.status in ('REDEEMED', 'REVERSED') and n.amount_minor = r.discount_minor
          else r.status = 'REVERSED' and n.amount_minor = -r.discount_minor
        end) is not true;
  if not found then
    return null;
  elsif v_wrong.is_untold then
    raise exception 'no event tells the distributor of ledger entry %', v_wrong.entry_id
      using errcode = 'foreign_key_violation', constraint = 'each_movement_is_told', hint = 'Write the event first.';
  else
    raise exception 'ledger entry % is not what its redemption calls for', v_wrong.entry_id
      using errcode = 'check_violation', constraint = 'ledger_agrees_with_the_redemption',
            hint = 'Write the redemption and the reversal first.';
  end if;
end
$$;
comment on function core.check_ledger() is
  'Trigger: a ledger entry is what its redemption calls for, not of the future, and its distributor is told of it.';

create trigger ledger_agrees_with_the_redemption
after insert on core.ledger_entry
referencing new table as new_entry
for each statement execute function core.check_ledger();

create trigger redemption_is_kept before delete or truncate on core.redemption
for each statement execute function core.refuse_change();
create trigger reversal_is_kept before update or delete or truncate on core.reversal
for each statement execute function core.refuse_change();
create trigger voiding_is_kept before update or delete or truncate on core.voiding
for each statement execute function core.refuse_change();
create trigger ledger_is_immutable before update or delete or truncate on core.ledger_entry
for each statement execute function core.refuse_change();
create trigger event_is_immutable before update or delete or truncate on core.event
for each statement execute function core.refuse_change();
