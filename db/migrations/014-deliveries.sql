-- Webhook deliveries: a row for each event that a subscriber has not accepted yet, the test events
-- that wait, a log of all attempts, and the replaced secrets that still sign.

create table core.delivery (
  tenant_id        int          not null,
  party_id         int          not null,
  event_id         uuid         not null,
  event_seq        bigint       not null,
  attempt_count    int          not null default 0,
  next_attempt_at  core.finite_time not null,
  parked_at        core.finite_time,
  last_error       text,
  primary key (tenant_id, party_id, event_id),
  foreign key (tenant_id, party_id) references core.webhook,
  constraint attempt_count_is_0_to_10 check (attempt_count between 0 and 10)
) with (fillfactor = 80);
comment on table core.delivery is
  'Events that a subscriber has not accepted yet; the row is deleted when it does. After ten '
  'attempts the delivery is parked until replayed.';
create index delivery_is_due
on core.delivery (tenant_id, party_id, next_attempt_at, event_seq)
where parked_at is null;
create index delivery_is_parked on core.delivery (tenant_id, party_id) where parked_at is not null;

-- Replaces a foreign key, because an event is in one of two tables. Events are never deleted or
-- changed, so this check of new rows is enough.
create function core.check_deliveries() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_wrong  uuid;
begin
  select n.event_id into v_wrong
  from new_delivery n
  where not exists (
    select
    from core.ledger_entry l
    where l.tenant_id = n.tenant_id
      and l.entry_id = n.event_id
      and l.event_seq = n.event_seq
      and l.distributor_id = n.party_id)
  and not exists (
    select
    from core.event e
    where e.tenant_id = n.tenant_id
      and e.event_id = n.event_id
      and e.event_seq = n.event_seq
      and e.party_id = n.party_id);
  if found then
    raise exception 'delivery %: its subscriber has no such event', v_wrong
      using errcode = 'foreign_key_violation', constraint = 'delivery_is_of_an_event';
  end if;
  return null;
end
$$;
comment on function core.check_deliveries() is
  'Trigger: the event of a delivery exists, has its number, and is for its subscriber.';

create trigger delivery_is_of_an_event
after insert on core.delivery
referencing new table as new_delivery
for each statement execute function core.check_deliveries();

create function core.check_delivered() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_lost  uuid;
begin
  select o.event_id into v_lost
  from old_delivery o
  where not exists (
    select
    from core.delivery_attempt a
    where a.tenant_id = o.tenant_id
      and a.party_id = o.party_id
      and a.attempted_at >= now()  -- recorded by this transaction
      and a.event_id = o.event_id
      and a.http_status between 200 and 299);
  if found then
    raise exception 'delivery %: its subscriber has not accepted the event', v_lost
      using errcode = 'check_violation', constraint = 'delivery_is_kept_until_accepted',
            hint = 'Disable the webhook to stop its deliveries.';
  end if;
  return null;
end
$$;
comment on function core.check_delivered() is
  'Trigger: a delivery is deleted by the transaction that records that its subscriber accepted it.';

create trigger delivery_is_kept_until_accepted
after delete on core.delivery
referencing old table as old_delivery
for each statement execute function core.check_delivered();

create trigger delivery_keeps_its_event
before update of tenant_id, party_id, event_id, event_seq or truncate on core.delivery
for each statement execute function core.refuse_change();

create table core.test_delivery (
  tenant_id   int          not null,
  party_id    int          not null,
  event_type  text         not null,
  event_id    uuid         not null,
  body        text         not null,
  created_at  timestamptz  not null,
  primary key (tenant_id, party_id, event_type),
  foreign key (tenant_id, party_id) references core.webhook,
  constraint test_event_type_is_known check (event_type in (
    'coupon.redeemed', 'coupon.reversed', 'coupon.voided', 'coupon.expired', 'batch.generated',
    'allocation.completed', 'reconciliation.ready'))
);
comment on table core.test_delivery is
  'Test events that wait to be sent, at most one of each type for a webhook. Each is tried once; '
  'the row is then deleted. They are in no other table of events, deliveries, feeds or ledger.';
comment on column core.test_delivery.event_id is 'The webhook-id. No event has it.';
comment on column core.test_delivery.body is 'The event as JSON. Its IDs exist nowhere.';

create table core.delivery_attempt (
  attempt_id       bigint       primary key generated always as identity,
  tenant_id        int          not null,
  party_id         int          not null,
  event_id         uuid         not null,
  attempt          int          not null,
  http_status      int,
  error            text,
  duration_ms      int          not null,
  attempted_at     timestamptz  not null,
  test_event_type  text
);
comment on table core.delivery_attempt is 'Log of delivery attempts of the last 30 days.';
comment on column core.delivery_attempt.http_status is 'Null: no answer, and error says why.';
comment on column core.delivery_attempt.test_event_type is
  'The type of a test event, which is in no other table. Null: a real event.';
-- With attempt_id, because a plan for the newest attempts otherwise sorts all of them.
create index delivery_attempt_of_party
on core.delivery_attempt (tenant_id, party_id, attempted_at, attempt_id);
create index failed_attempt_of_party on core.delivery_attempt (tenant_id, party_id, attempted_at)
where http_status is null or http_status not between 200 and 299;

create table core.replaced_secret (
  tenant_id      int               not null,
  party_id       int               not null,
  replaced_at    core.finite_time  not null,
  sealed_secret  bytea             not null,
  primary key (tenant_id, party_id, replaced_at),
  foreign key (tenant_id, party_id) references core.webhook
);
comment on table core.replaced_secret is
  'The earlier secrets of a webhook. Each signs for 24 hours beside its successors. '
  'Ended ones go when the next one is replaced.';
comment on column core.replaced_secret.sealed_secret is 'Like core.webhook.sealed_secret.';

create function core.keep_replaced_secret() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  v_now  timestamptz := clock_timestamp();
begin
  delete from core.replaced_secret s
  where s.tenant_id = old.tenant_id
    and s.party_id = old.party_id
    and s.replaced_at <= v_now - interval '24 hours';
  insert into core.replaced_secret (tenant_id, party_id, replaced_at, sealed_secret)
  values (old.tenant_id, old.party_id, v_now, old.sealed_secret);
  new.rotated_at := v_now;
  return new;
end
$$;
comment on function core.keep_replaced_secret() is
  'Trigger: a secret that is replaced signs for 24 hours more, however often that happens.';

create trigger replaced_secret_is_kept
before update of sealed_secret on core.webhook
for each row when (new.sealed_secret <> old.sealed_secret)
execute function core.keep_replaced_secret();
