-- The events of each feed, in one order and without gaps.

create table core.feed (
  tenant_id      int     not null references core.tenant,
  party_id       int     not null,
  last_position  bigint  not null default 0,
  skipped_count  bigint  not null default 0,
  last_step      bigint  not null default 0,
  primary key (tenant_id, party_id),
  constraint last_position_is_not_negative check (last_position >= 0)
);
comment on table core.feed is
  'The coupon events of a distributor in one order. Variant A has one feed per tenant, with '
  'party_id 0.';
comment on column core.feed.last_position is
  'Position of the newest event. 0: no event yet. A new page moves it.';
comment on column core.feed.skipped_count is
  'How many positions restores skipped, so that no position from before a restore is used again.';
comment on column core.feed.last_step is 'The step of the newest page, see core.sequencer.';

create table core.feed_page (
  tenant_id       int              not null,
  party_id        int              not null,
  first_position  bigint           not null,
  sequenced_at    timestamptz      not null,
  event_seqs      core.event_list  not null,
  primary key (tenant_id, party_id, first_position)
);
comment on table core.feed_page is
  'The events that a step added to a feed. Their positions start at first_position; each page '
  'starts after the one before, except for positions that a restore skipped '
  '(core.feed.skipped_count). Old pages are pruned; the others never change. '
  'The view feed_event of the schema rules has a row for each event.';

comment on column core.feed_page.first_position is
  'The position of the first event; the others follow.';
comment on column core.feed_page.event_seqs is
  'The numbers of the events, in the order of their positions.';

-- Compressing the numbers would take longer than everything else about a page.
alter table core.feed_page alter column event_seqs set storage external;

create function core.check_feed_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.last_step <= (select s.step from core.sequencer s) and (case tg_op
    when 'INSERT' then new.last_position = new.skipped_count
    else (new.tenant_id, new.party_id) = (old.tenant_id, old.party_id)
         and new.last_position >= old.last_position
         and new.last_step >= old.last_step
         and (new.last_position - old.last_position = new.skipped_count - old.skipped_count
              or new.skipped_count = old.skipped_count and exists (
                select
                from core.feed_page p
                where p.tenant_id = new.tenant_id
                  and p.party_id = new.party_id
                  and p.first_position = old.last_position + 1))
  end) then
    return null;
  end if;
  raise exception 'a feed only goes forward, by a page or by skipped positions; its key is fixed'
    using errcode = 'check_violation', constraint = 'feed_goes_forward';
end
$$;
comment on function core.check_feed_change() is
  'Trigger: a feed goes forward, and each position is in a page or skipped.';

create trigger feed_goes_forward
after insert or update on core.feed
for each row execute function core.check_feed_change();

create trigger feed_is_kept before delete or truncate on core.feed
for each statement execute function core.refuse_change();

-- Replaces foreign keys, which check row by row (see 009-consistency.sql). Moves the feeds to the
-- ends of their pages, so that no page can be written beside its feed.
create function core.check_feed_pages() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_is     record;
  v_moved  int;
begin
  select max(s.step) as step, (select count(*) from new_page) as pages,
         min(x.event_seq) filter (where (
           e.coupon_id is not null
           and e.tenant_id = n.tenant_id
           and n.party_id = case t.variant when 'A' then 0 else e.party_id end) is not true)
           as foreign_seq,
         (select min(core.find_stray_event(p.event_seqs)) from new_page p) as stray_seq
    into v_is
  from core.sequencer s
  cross join new_page n
  left join core.tenant t on t.tenant_id = n.tenant_id
  cross join lateral unnest(n.event_seqs) x (event_seq)
  left join (
    select o.event_seq, o.tenant_id, o.party_id, o.coupon_id
    from core.event o
    union all
    select l.event_seq, l.tenant_id, l.distributor_id, l.coupon_id
    from core.ledger_entry l) e
    on e.event_seq = x.event_seq;
  if v_is.foreign_seq is not null then
    raise exception 'event % does not belong to this feed', v_is.foreign_seq
      using errcode = 'foreign_key_violation', constraint = 'event_is_of_its_feed';
  elsif v_is.stray_seq is not null then
    raise exception 'event % is not of this step of the sequencer', v_is.stray_seq
      using errcode = 'check_violation', constraint = 'event_is_sequenced_once';
  end if;
  update core.feed f
  set last_position = n.first_position + cardinality(n.event_seqs) - 1, last_step = v_is.step
  from new_page n
  where f.tenant_id = n.tenant_id
    and f.party_id = n.party_id
    and f.last_position = n.first_position - 1
    and f.last_step < v_is.step;
  get diagnostics v_moved = row_count;
  if v_moved <> v_is.pages then
    raise exception 'a page does not begin after its feed, or the feed has a page of this step'
      using errcode = 'check_violation', constraint = 'page_continues_its_feed';
  end if;
  return null;
end
$$;
comment on function core.check_feed_pages() is
  'Trigger: a page has the coupon events of its party, or of its tenant in Variant A; it continues '
  'its feed, and its events have no other position.';

create trigger page_continues_its_feed
after insert on core.feed_page
referencing new table as new_page
for each statement execute function core.check_feed_pages();

create function core.check_feed_pruning() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
begin
  if exists (
    select
    from (
      select tenant_id, party_id, max(first_position) as last_position
      from old_page
      group by tenant_id, party_id) o
    join core.feed_page p
      on p.tenant_id = o.tenant_id
         and p.party_id = o.party_id
         and p.first_position < o.last_position)
  then
    raise exception 'a feed loses its oldest pages first'
      using errcode = 'check_violation', constraint = 'feed_is_pruned_from_its_front';
  elsif exists (select from old_page o where o.sequenced_at > now() - interval '1 day') then
    raise exception 'a feed keeps the pages of the last day'
      using errcode = 'check_violation', constraint = 'new_page_is_kept';
  end if;
  return null;
end
$$;
comment on function core.check_feed_pruning() is
  'Trigger: no page is deleted within a day, or while an older one of its feed is kept.';

create trigger feed_is_pruned_from_its_front
after delete on core.feed_page
referencing old table as old_page
for each statement execute function core.check_feed_pruning();

create trigger feed_page_is_immutable before update or truncate on core.feed_page
for each statement execute function core.refuse_change();
