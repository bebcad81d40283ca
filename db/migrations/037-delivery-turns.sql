-- Redemptions first: a delivery says whether it goes behind the others of its subscriber, and of
-- which coupon it is, because of one coupon nothing overtakes. A subscriber chooses which types of
-- events it takes, and whether they carry data. Each delivery keeps that choice, so that a retry
-- sends the same body.

alter table core.webhook
  add column expand boolean not null default false,
  add column event_types text[],
  add constraint event_types_are_known check (
    cardinality(event_types) > 0 and event_types <@ array[
      'coupon.redeemed', 'coupon.reversed', 'coupon.voided', 'coupon.expired', 'batch.generated',
      'allocation.completed', 'reconciliation.ready']) not valid;
comment on column core.webhook.expand is
  'Whether coupon events carry data: amounts, shop and order. Decides for new deliveries.';
comment on column core.webhook.event_types is
  'The types of events that the subscriber takes. Null: all. Decides for new deliveries.';

alter table core.delivery
  add column coupon_id uuid,
  add column is_behind boolean not null default false,
  add column is_expanded boolean not null default false;
comment on column core.delivery.coupon_id is
  'The coupon of the event. Null: it is about no coupon, or the row is older than this column.';
comment on column core.delivery.is_behind is
  'False: redemptions, reversals, and events of batches and days, which go first. True: expiries, '
  'voids and replays. A delivery joins another one that waits for the same coupon.';
comment on column core.delivery.is_expanded is
  'Whether the event is sent with data: core.webhook.expand when the delivery was made.';

create or replace function core.check_deliveries() returns trigger
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
      and l.distributor_id = n.party_id
      and l.coupon_id = coalesce(n.coupon_id, l.coupon_id))
  and not exists (
    select
    from core.event e
    where e.tenant_id = n.tenant_id
      and e.event_id = n.event_id
      and e.event_seq = n.event_seq
      and e.party_id = n.party_id
      -- without its coupon, as the version before writes it
      and (n.coupon_id is null or e.coupon_id = n.coupon_id));
  if found then
    raise exception 'delivery %: its subscriber has no such event',
      core.format_id('evt', v_wrong)
      using errcode = 'foreign_key_violation', constraint = 'delivery_is_of_an_event';
  end if;
  return null;
end
$$;
comment on function core.check_deliveries() is
  'Trigger: the event of a delivery exists, has its number and its coupon, and is for its '
  'subscriber.';

create or replace trigger delivery_keeps_its_event
before update of tenant_id, party_id, event_id, event_seq, coupon_id or truncate on core.delivery
for each statement execute function core.refuse_change();
