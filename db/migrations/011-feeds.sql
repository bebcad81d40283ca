-- The tables of the sequencer: the events of each feed, in one order and without gaps.

create table core.feed (
  tenant_id      int     not null references core.tenant,
  party_id       int     not null,
  last_position  bigint  not null default 0,
  skipped_count  bigint  not null default 0,
  primary key (tenant_id, party_id),
  constraint last_position_is_not_negative check (last_position >= 0),
  constraint skipped_positions_are_within_the_feed check (skipped_count between 0 and last_position)
);
comment on table core.feed is
  'The coupon events of a distributor in one order. Variant A has one feed per tenant, with '
  'party_id 0.';
comment on column core.feed.last_position is 'Position of the newest event. 0: no event yet.';
comment on column core.feed.skipped_count is
  'How many positions restores skipped, so that no position from before a restore is used again.';

create table core.feed_event (
  tenant_id     int          not null,
  party_id      int          not null,
  position      bigint       not null,
  event_id      uuid         not null,
  body          text         not null,
  sequenced_at  timestamptz  not null,
  primary key (tenant_id, party_id, position),
  constraint event_is_sequenced_once unique (tenant_id, event_id),
  constraint position_is_positive check (position > 0)
);
comment on table core.feed_event is
  'Positions start at 1 in each feed and have no gaps, except those that admin.note_restore '
  'skipped (core.feed.skipped_count). Old events are pruned; the others never change.';
comment on column core.feed_event.body is 'The event as JSON, the same in feed pages and webhooks.';
create index feed_event_by_age on core.feed_event using brin (sequenced_at);

create function core.check_feed_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.party_id) <> (old.tenant_id, old.party_id)
     or new.last_position < old.last_position
  then
    raise exception 'the last position of a feed never moves back, and its key is fixed'
      using errcode = 'check_violation', constraint = 'feed_goes_forward';
  end if;
  return new;
end
$$;
comment on function core.check_feed_change() is
  'Trigger: the last position of a feed never goes back.';

create trigger feed_goes_forward
before update on core.feed
for each row execute function core.check_feed_change();

create trigger feed_is_kept before delete or truncate on core.feed
for each statement execute function core.refuse_change();

-- Replaces foreign keys, which check row by row (see 009-consistency.sql).
create function core.check_feed_events() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_wrong  uuid;
begin
  select n.event_id into v_wrong
  from new_feed_event n
  left join core.event e on e.tenant_id = n.tenant_id and e.event_id = n.event_id
  left join core.tenant t on t.tenant_id = n.tenant_id
  left join core.feed f on f.tenant_id = n.tenant_id and f.party_id = n.party_id
  where f.party_id is null
     or e.coupon_id is null
     or n.party_id <> case t.variant when 'A' then 0 else e.party_id end
  limit 1;
  if found then
    raise exception 'event % does not belong to this feed', v_wrong
      using errcode = 'foreign_key_violation', constraint = 'event_is_of_its_feed';
  end if;
  return null;
end
$$;
comment on function core.check_feed_events() is
  'Trigger: a feed holds the coupon events of its party, or of its tenant in Variant A.';

create trigger event_is_of_its_feed
after insert on core.feed_event
referencing new table as new_feed_event
for each statement execute function core.check_feed_events();

create trigger feed_event_is_immutable before update or truncate on core.feed_event
for each statement execute function core.refuse_change();

create table core.sequencer (
  is_only        boolean      primary key default true,
  high_seq       bigint       not null default 0,
  feed_base      bigint       not null default 0,
  stepped_at     timestamptz  not null default now(),
  last_snapshot  pg_snapshot,
  constraint sequencer_has_one_row check (is_only)
);
comment on table core.sequencer is
  'The state of the sequencer. An advisory lock lets one run at a time (rules.try_sequencer_lock).';
comment on column core.sequencer.high_seq is
  'Events up to this number are sequenced, except for the numbers in core.event_gap.';
comment on column core.sequencer.feed_base is
  'Feeds start after this position, which is above every cursor that a restore made invalid.';
comment on column core.sequencer.last_snapshot is
  'Snapshot of the last step that found something. A missing number can only appear if its '
  'transaction ended after that. Null: search all gaps.';

insert into core.sequencer default values;

create table core.event_gap (
  event_seq     bigint  primary key,
  drawn_before  xid8    not null
);
comment on table core.event_gap is
  'Event numbers that were drawn but are not visible yet: their transactions commit late or were '
  'rolled back.';
comment on column core.event_gap.drawn_before is
  'A transaction with a lower ID drew the number. Once all of those have ended, a number that is '
  'still missing was rolled back.';
create index event_gap_by_drawn_before on core.event_gap (drawn_before);
