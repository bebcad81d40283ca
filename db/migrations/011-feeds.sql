-- What the sequencer writes: the events of each feed in one order without gaps.

create table core.feed (
  tenant_id      int     not null references core.tenant,
  party_id       int     not null,
  last_position  bigint  not null default 0,
  skipped_count  bigint  not null default 0,
  primary key (tenant_id, party_id),
  constraint last_position_is_not_negative check (last_position >= 0),
  constraint skipped_positions_are_within_the_feed check (skipped_count between 0 and last_position)
);
comment on column core.feed.skipped_count is 'Positions that restores left out: so no cursor that was lost with one is mistaken for one of now.';
comment on table core.feed is 'A distributor''s coupon events in one order. Variant A: one feed a tenant, party_id 0.';

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
comment on table core.feed_event is 'Positions are 1..N in each feed, without gaps. Old ones are pruned, the others never change.';
comment on column core.feed_event.body is 'The event as everybody is shown it, in pages and webhooks.';
create index feed_event_by_age on core.feed_event using brin (sequenced_at);

create function core.check_feed_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.party_id) <> (old.tenant_id, old.party_id) or new.last_position < old.last_position then
    raise exception 'a feed only goes forward'
      using errcode = 'check_violation', constraint = 'feed_goes_forward';
  end if;
  return new;
end
$$;
comment on function core.check_feed_change() is 'Trigger: the last position of a feed never goes back.';

create trigger feed_goes_forward
before update on core.feed
for each row execute function core.check_feed_change();

create trigger feed_is_kept before delete or truncate on core.feed
for each statement execute function core.refuse_change();

-- Instead of foreign keys, which ask for each row (db/README.md).
create function core.check_feed_events() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_material = off as $$
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
    raise exception 'event % is not of this feed', v_wrong
      using errcode = 'foreign_key_violation', constraint = 'event_is_of_its_feed';
  end if;
  return null;
end
$$;
comment on function core.check_feed_events() is 'Trigger: a feed holds the coupon events of its party, or of its tenant in Variant A.';

create trigger event_is_of_its_feed
after insert on core.feed_event
referencing new table as new_feed_event
for each statement execute function core.check_feed_events();

create trigger feed_event_is_immutable before update or truncate on core.feed_event
for each statement execute function core.refuse_change();

create table core.sequencer (
  is_only      boolean      primary key default true,
  high_seq     bigint       not null default 0,
  feed_base    bigint       not null default 0,
  stepped_at   timestamptz  not null default now(),
  looked_with  pg_snapshot,
  constraint sequencer_has_one_row check (is_only)
);
comment on table core.sequencer is 'Where the sequencer is. One at a time works, by an advisory lock (rules.try_sequencer_lock).';
comment on column core.sequencer.feed_base is 'Feeds begin behind this position: no cursor that was lost with a restore is above it.';
comment on column core.sequencer.high_seq is 'Events up to here are sequenced, but for the numbers in core.event_gap.';
comment on column core.sequencer.looked_with is
  'The snapshot of the last step that found something. A number awaited since then can only have come from a transaction that has ended since. Null: look for all.';

insert into core.sequencer default values;

create table core.event_gap (
  event_seq    bigint  primary key,
  seen_before  xid8    not null
);
comment on table core.event_gap is 'Event numbers that were drawn but not seen yet: their transactions are late, or were rolled back.';
comment on column core.event_gap.seen_before is
  'The number was drawn by a transaction before this one. When all those are over and it is still not seen, it never will be.';
create index event_gap_by_bound on core.event_gap (seen_before);
comment on column core.feed.last_position is 'Of the newest event; 0: none yet.';
