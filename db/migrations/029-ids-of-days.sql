-- Messages about business days name parties and events by their external IDs, see
-- 026-external-ids.

create or replace function core.check_posting_pages() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_books  int;
  v_is     record;
begin
  -- first, to wait for a session that closes the day
  update core.ledger_book b
  set last_step = s.step
  from core.sequencer s, new_page n
  where b.tenant_id = n.tenant_id and b.party_id = n.distributor_id and b.last_step < s.step;
  get diagnostics v_books = row_count;
  select (select count(*) from new_page) as pages,
         (select count(*) from (select distinct tenant_id, distributor_id from new_page) d)
           as distributors,
         exists (
           select
           from new_page c
           join core.statement y using (tenant_id, distributor_id, business_date)) as is_closed,
         exists (
           select
           from new_page c
           where c.first_number <> 1 + core.count_postings(
             c.tenant_id, c.distributor_id, c.business_date, c.first_number)) as is_misnumbered,
         min(x.event_seq) filter (where l.entry_id is null) as foreign_seq,
         (select min(core.find_stray_event(p.event_seqs)) from new_page p) as stray_seq
    into v_is
  from new_page n
  cross join lateral unnest(n.event_seqs) x (event_seq)
  left join core.ledger_entry l
    on l.event_seq = x.event_seq
       and l.tenant_id = n.tenant_id
       and l.distributor_id = n.distributor_id;
  if v_is.foreign_seq is not null then
    raise exception '% is not a ledger entry of this distributor',
      core.name_event(v_is.foreign_seq)
      using errcode = 'foreign_key_violation', constraint = 'posting_is_of_its_distributor';
  elsif v_is.is_closed then
    raise exception 'a closed business day gets no more entries'
      using errcode = 'check_violation', constraint = 'closed_day_is_closed';
  elsif v_is.is_misnumbered then
    raise exception 'a page does not begin after the last entry of its business day'
      using errcode = 'check_violation', constraint = 'page_continues_its_day';
  elsif v_is.stray_seq is not null
     or v_books <> v_is.distributors
     -- in one step, a distributor rarely has entries of two days
     or v_is.distributors < v_is.pages and exists (
       select
       from new_page n
       cross join lateral unnest(n.event_seqs) x (event_seq)
       group by x.event_seq
       having count(*) > 1)
  then
    raise exception 'a ledger entry is posted twice, or not by this step of the sequencer'
      using errcode = 'check_violation', constraint = 'entry_is_posted_once',
            hint = 'A distributor gets its pages of a step in one statement, and has a book.';
  end if;
  return null;
end
$$;

create or replace function core.check_statement_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if old.ready_at is not null
     or (new.tenant_id, new.distributor_id, new.business_date, new.entry_count,
         new.is_one_of_several, new.closed_at)
        is distinct from
        (old.tenant_id, old.distributor_id, old.business_date, old.entry_count,
         old.is_one_of_several, old.closed_at)
  then
    raise exception 'statement of % of %: only its files can be added, once',
      core.name_party(old.tenant_id, old.distributor_id), old.business_date
      using errcode = 'check_violation', constraint = 'ready_statement_never_changes';
  end if;
  return new;
end
$$;

create or replace function core.check_book_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' and new.open_on > (
    -- usually today; in Variant A after the days that other distributors have closed, in the east
    -- or with a clock that was ahead. A refusal stops the sequencer.
    select greatest(
      (clock_timestamp() at time zone p.time_zone)::date + 7,
      (select max(s.business_date) + 1 from core.statement s where s.tenant_id = p.tenant_id))
    from core.party p
    where p.tenant_id = new.tenant_id and p.party_id = new.party_id)
  then
    raise exception 'ledger book of %: it begins within a week or after closed days, not on %',
      core.name_party(new.tenant_id, new.party_id), new.open_on
      using errcode = 'check_violation', constraint = 'book_begins_within_a_week';
  end if;
  if (new.tenant_id, new.party_id) <> (old.tenant_id, old.party_id)
     or new.open_on < old.open_on
     or new.last_step < old.last_step
     or new.last_step > (select s.step from core.sequencer s)
  then
    raise exception 'ledger book of %: it goes forward, up to the sequencer, and keeps its key',
      core.name_party(old.tenant_id, old.party_id)
      using errcode = 'check_violation', constraint = 'open_day_goes_forward';
  end if;
  return new;
end
$$;

create or replace function core.check_closing() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if new.open_on <> old.open_on and not exists (
    select
    from core.statement s
    join core.party p on p.tenant_id = s.tenant_id and p.party_id = s.distributor_id
    where s.tenant_id = old.tenant_id
      and s.distributor_id = old.party_id
      and s.business_date = old.open_on
      -- the next local day that exists (Apia had no 2011-12-30)
      and new.open_on = (
        (old.open_on + 1)::timestamp at time zone p.time_zone at time zone p.time_zone)::date)
  then
    raise exception 'ledger book of %: it moves day by day, after a statement, and not from % to %',
      core.name_party(old.tenant_id, old.party_id), old.open_on, new.open_on
      using errcode = 'check_violation', constraint = 'day_is_closed_before_the_next_opens';
  end if;
  return null;
end
$$;

create or replace function core.check_new_statement() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.business_date >= (
    select b.open_on
    from core.ledger_book b
    where b.tenant_id = new.tenant_id and b.party_id = new.distributor_id)
  then
    raise exception 'statement of % of %: the day is still open',
      core.name_party(new.tenant_id, new.distributor_id), new.business_date
      using errcode = 'check_violation', constraint = 'open_day_has_no_statement',
            hint = 'Closing a day moves its book first, in the same transaction.';
  end if;
  return null;
end
$$;
