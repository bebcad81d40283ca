-- Business days: the ledger entries of each day, and the statement of each closed day.

create table core.ledger_book (
  tenant_id  int     not null,
  party_id   int     not null,
  open_on    date    not null,
  last_step  bigint  not null default 0,
  primary key (tenant_id, party_id),
  foreign key (tenant_id, party_id) references core.party
);
comment on table core.ledger_book is
  'The business days of a distributor. Opened with the first allocation to it.';
comment on column core.ledger_book.open_on is 'The first business day that is not closed.';
comment on column core.ledger_book.last_step is
  'The step of the newest posting pages, see core.sequencer. New pages move it.';

create table core.statement (
  tenant_id          int          not null,
  distributor_id     int          not null,
  business_date      date         not null,
  entry_count        int          not null,
  is_one_of_several  boolean      not null,
  closed_at          timestamptz  not null,
  ready_at           timestamptz,
  detail_bytes       bigint,
  detail_sha256      text,
  summary_rows       int,
  summary_bytes      bigint,
  summary_sha256     text,
  primary key (tenant_id, distributor_id, business_date),
  foreign key (tenant_id, distributor_id) references core.ledger_book,
  constraint files_are_described_when_ready check (
    num_nulls(
      ready_at, detail_bytes, detail_sha256, summary_rows, summary_bytes, summary_sha256) in (0, 6))
);
comment on table core.statement is
  'A closed business day. Closing fixes its entries. ready_at: when its files were rendered and '
  'measured.';
comment on column core.statement.is_one_of_several is
  'Whether several parties of the tenant had a ledger book when the day was closed. In Variant A, '
  'a download then names its distributor. Never changes, so that no address changes its meaning.';
create index statement_by_date on core.statement (tenant_id, business_date);
create index statement_is_not_ready on core.statement (tenant_id, distributor_id, business_date)
where ready_at is null;

create table core.posting_page (
  tenant_id       int              not null,
  distributor_id  int              not null,
  business_date   date             not null,
  first_number    int              not null,
  event_seqs      core.event_list  not null,
  primary key (tenant_id, distributor_id, business_date, first_number)
);
comment on table core.posting_page is
  'The ledger entries that a step of the sequencer posted to a business day. Their lines start at '
  'first_number and are 1 to n within a day. '
  'The view posting of the schema rules has a row for each entry.';
comment on column core.posting_page.first_number is
  'The number of the first entry in its business day; the others follow.';
comment on column core.posting_page.event_seqs is
  'The numbers of the entries (core.ledger_entry.event_seq), in the order of their lines.';

alter table core.posting_page alter column event_seqs set storage external;

create function core.count_postings(
  p_tenant_id int, p_distributor_id int, p_business_date date, p_below int default 2147483647)
returns int
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  return coalesce((
    select p.first_number + cardinality(p.event_seqs) - 1
    from core.posting_page p
    where p.tenant_id = p_tenant_id
      and p.distributor_id = p_distributor_id
      and p.business_date = p_business_date
      and p.first_number < p_below
    order by p.first_number desc
    limit 1), 0);
end
$$;
comment on function core.count_postings(int, int, date, int) is
  'How many ledger entries a business day has: the number of the last one, on pages that begin '
  'below p_below.';

-- A closed day gets no more entries, and its statement changes only once: when its files are
-- ready.
create function core.check_posting_pages() returns trigger
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
    raise exception 'event % is not a ledger entry of this distributor', v_is.foreign_seq
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
comment on function core.check_posting_pages() is
  'Trigger: a business day gets entries of its distributor, each once and with the next number, '
  'and none once it is closed.';

create trigger closed_day_is_closed
after insert on core.posting_page
referencing new table as new_page
for each statement execute function core.check_posting_pages();

create function core.check_statement_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if old.ready_at is not null
     or (new.tenant_id, new.distributor_id, new.business_date, new.entry_count,
         new.is_one_of_several, new.closed_at)
        is distinct from
        (old.tenant_id, old.distributor_id, old.business_date, old.entry_count,
         old.is_one_of_several, old.closed_at)
  then
    raise exception 'statement of %: only its files can be added, once', old.business_date
      using errcode = 'check_violation', constraint = 'ready_statement_never_changes';
  end if;
  return new;
end
$$;
comment on function core.check_statement_change() is
  'Trigger: a statement changes only once, when its files are ready.';

create trigger ready_statement_never_changes
before update on core.statement
for each row execute function core.check_statement_change();

create trigger statement_is_kept before delete or truncate on core.statement
for each statement execute function core.refuse_change();
create trigger posting_page_is_immutable before update or delete or truncate on core.posting_page
for each statement execute function core.refuse_change();

create function core.check_book_change() returns trigger
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
    raise exception 'a ledger book begins within a week or after closed days, not on %', new.open_on
      using errcode = 'check_violation', constraint = 'book_begins_within_a_week';
  end if;
  if (new.tenant_id, new.party_id) <> (old.tenant_id, old.party_id)
     or new.open_on < old.open_on
     or new.last_step < old.last_step
     or new.last_step > (select s.step from core.sequencer s)
  then
    raise exception 'a ledger book never moves back or ahead of the sequencer; its key is fixed'
      using errcode = 'check_violation', constraint = 'open_day_goes_forward';
  end if;
  return new;
end
$$;
comment on function core.check_book_change() is
  'Trigger: a book begins within a week, or after the days that the tenant has closed. Its open '
  'day and its last step never move back.';

create trigger open_day_goes_forward
before insert or update on core.ledger_book
for each row execute function core.check_book_change();

create trigger ledger_book_is_kept before delete or truncate on core.ledger_book
for each statement execute function core.refuse_change();

create table core.statement_line (
  tenant_id             int     not null,
  distributor_id        int     not null,
  business_date         date    not null,
  number                int     not null,
  merchant_id           int     not null,
  template_id           int     not null,
  currency              text    not null references core.currency,
  redemption_count      int     not null,
  redemption_minor      bigint  not null,
  reversal_count        int     not null,
  reversal_minor        bigint  not null,
  primary key (tenant_id, distributor_id, business_date, number),
  foreign key (tenant_id, distributor_id, business_date) references core.statement,
  foreign key (tenant_id, merchant_id) references core.merchant,
  foreign key (tenant_id, template_id) references core.template,
  constraint line_has_entries check (redemption_count + reversal_count > 0)
);
comment on table core.statement_line is
  'The summary of a closed day, written after closing: one line per merchant, template and '
  'currency.';

create trigger statement_line_is_immutable
before update or delete or truncate on core.statement_line
for each statement execute function core.refuse_change();
