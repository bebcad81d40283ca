-- Messages about feeds and deliveries name parties and events by their external IDs, see
-- 026-external-ids.

create or replace function core.check_feed_change() returns trigger
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
  raise exception 'feed of %: it goes forward by a page or by skipped positions; its key is fixed',
    core.name_party(old.tenant_id, old.party_id)
    using errcode = 'check_violation', constraint = 'feed_goes_forward';
end
$$;

create or replace function core.check_feed_pages() returns trigger
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
    raise exception '% does not belong to this feed', core.name_event(v_is.foreign_seq)
      using errcode = 'foreign_key_violation', constraint = 'event_is_of_its_feed';
  elsif v_is.stray_seq is not null then
    raise exception '% is not of this step of the sequencer',
      core.name_event(v_is.stray_seq)
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
      and l.distributor_id = n.party_id)
  and not exists (
    select
    from core.event e
    where e.tenant_id = n.tenant_id
      and e.event_id = n.event_id
      and e.event_seq = n.event_seq
      and e.party_id = n.party_id);
  if found then
    raise exception 'delivery %: its subscriber has no such event',
      core.format_id('evt', v_wrong)
      using errcode = 'foreign_key_violation', constraint = 'delivery_is_of_an_event';
  end if;
  return null;
end
$$;

create or replace function core.check_delivered() returns trigger
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
    raise exception 'delivery %: its subscriber has not accepted the event',
      core.format_id('evt', v_lost)
      using errcode = 'check_violation', constraint = 'delivery_is_kept_until_accepted',
            hint = 'Disable the webhook to stop its deliveries.';
  end if;
  return null;
end
$$;
