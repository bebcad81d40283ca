-- The changes of each merchant in one order: its redemptions and reversals, as the sequencer took
-- them. A list of them only grows at its end, whatever commits late.

-- A step that runs now must not miss the new table: it waits here, or this migration for it.
lock table core.sequencer in access exclusive mode;

-- An entry is on one page, for the same reasons as a posting (011-sequencer.sql): the numbers of
-- two steps are disjoint, a page holds numbers of the current step, and a merchant gets one page in
-- a step.
create table core.merchant_page (
  tenant_id         int              not null,
  merchant_id       int              not null,
  first_position    bigint           not null,
  recorded_from     timestamptz      not null,
  recorded_through  timestamptz      not null,
  event_seqs        core.event_list  not null,
  primary key (merchant_id, tenant_id, first_position),
  constraint page_is_recorded_forward check (recorded_from <= recorded_through)
);
comment on table core.merchant_page is
  'The redemptions and reversals of a merchant that a step of the sequencer took. Their positions '
  'start at first_position; each page starts after the one before, except after a restore '
  '(core.sequencer.feed_base). The view merchant_change of the schema rules has a row for each.';
comment on column core.merchant_page.first_position is
  'The position of the first entry; the others follow.';
comment on column core.merchant_page.recorded_from is
  'The earliest recorded_at of its entries.';
comment on column core.merchant_page.recorded_through is
  'The latest recorded_at of the entries up to this page, so it ascends with the pages.';
comment on column core.merchant_page.event_seqs is
  'The numbers of the entries (core.ledger_entry.event_seq), in the order of their positions.';

alter table core.merchant_page alter column event_seqs set storage external;

-- A page with an entry that was recorded long before others that the list already had.
create index merchant_page_is_late on core.merchant_page (merchant_id, tenant_id, first_position)
where recorded_through - recorded_from > interval '5 seconds';

-- What was sequenced before.
insert into core.merchant_page
  (tenant_id, merchant_id, first_position, recorded_from, recorded_through, event_seqs)
select p.tenant_id, p.merchant_id, min(p.place), min(p.recorded_at),
       max(max(p.recorded_at)) over (
         partition by p.tenant_id, p.merchant_id order by min(p.place)),
       array_agg(p.event_seq order by p.event_seq)
from (
  select r.tenant_id, r.merchant_id, l.event_seq, l.recorded_at, row_number() over (
           partition by r.tenant_id, r.merchant_id order by l.event_seq) as place
  from core.ledger_entry l
  left join core.reversal v on v.tenant_id = l.tenant_id and v.reversal_id = l.entry_id
  join core.redemption r
    on r.tenant_id = l.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
  cross join core.sequencer s
  where l.event_seq <= s.high_seq
    and not exists (select from core.event_gap g where g.event_seq = l.event_seq)) p
group by p.tenant_id, p.merchant_id, (p.place - 1) / 1000;

create function core.check_merchant_pages() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_is  record;
begin
  -- waits for a step that another session takes without the advisory lock
  perform from core.sequencer s for no key update;
  select min(x.event_seq) filter (where r.merchant_id is distinct from n.merchant_id)
           as foreign_seq,
         (select min(core.find_stray_event(p.event_seqs)) from new_page p) as stray_seq
    into v_is
  from new_page n
  cross join lateral unnest(n.event_seqs) x (event_seq)
  left join core.ledger_entry l on l.event_seq = x.event_seq and l.tenant_id = n.tenant_id
  left join core.reversal v
    on v.tenant_id = l.tenant_id
       and v.reversal_id = case l.entry_type when 'REVERSAL' then l.entry_id end
  left join core.redemption r
    on r.tenant_id = l.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id);
  if v_is.foreign_seq is not null then
    raise exception 'event_seq % is not a redemption or reversal of this merchant', v_is.foreign_seq
      using errcode = 'foreign_key_violation', constraint = 'change_is_of_its_merchant';
  elsif v_is.stray_seq is not null then
    raise exception 'event_seq % is not of this step of the sequencer', v_is.stray_seq
      using errcode = 'check_violation', constraint = 'change_is_listed_once';
  elsif exists (
    select
    from new_page n
    left join lateral (
      select p.first_position + cardinality(p.event_seqs) as next_position, p.recorded_through,
             core.find_stray_event(p.event_seqs) is null as is_of_this_step
      from core.merchant_page p
      where p.tenant_id = n.tenant_id
        and p.merchant_id = n.merchant_id
        and p.first_position <> n.first_position
      order by p.first_position desc
      limit 1) b on true
    cross join core.sequencer s
    where n.first_position <> greatest(coalesce(b.next_position, 1), s.feed_base + 1)
       or b.is_of_this_step
       or (n.recorded_from, n.recorded_through) is distinct from (
         -- a join, or the planner looks for the first and the last time in the whole ledger
         select (min(l.recorded_at), greatest(max(l.recorded_at), b.recorded_through))
         from unnest(n.event_seqs) x (event_seq)
         join core.ledger_entry l on l.event_seq = x.event_seq))
  then
    raise exception 'a page does not begin after its list, or the merchant has a page of this step'
      using errcode = 'check_violation', constraint = 'page_continues_its_merchant';
  end if;
  return null;
end
$$;
comment on function core.check_merchant_pages() is
  'Trigger: a page has redemptions and reversals of its merchant; it continues the list of its '
  'merchant, and its entries have no other position.';

create trigger page_continues_its_merchant
after insert on core.merchant_page
referencing new table as new_page
for each statement execute function core.check_merchant_pages();

create trigger merchant_page_is_immutable before update or delete or truncate on core.merchant_page
for each statement execute function core.refuse_change();
