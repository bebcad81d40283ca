-- Business days: the ledger entries of each day, and the statement of each closed day.

create table core.ledger_book (
  tenant_id  int   not null,
  party_id   int   not null,
  open_on    date  not null,
  primary key (tenant_id, party_id),
  foreign key (tenant_id, party_id) references core.party
);
comment on table core.ledger_book is
  'The business days of a distributor. Opened with the first allocation to it.';
comment on column core.ledger_book.open_on is 'The first business day that is not closed.';

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
create index statement_is_not_ready on core.statement (tenant_id, distributor_id, business_date)
where ready_at is null;

create table core.posting (
  tenant_id       int   not null,
  distributor_id  int   not null,
  business_date   date  not null,
  number          int   not null,
  entry_id        uuid  not null,
  primary key (tenant_id, distributor_id, business_date, number),
  constraint entry_is_posted_once unique (entry_id, tenant_id),
  constraint posting_number_is_positive check (number > 0)
);
comment on table core.posting is
  'The business day of each ledger entry. Numbers are 1 to n within a day.';

-- A closed day gets no more postings, and its statement changes only once: when its files are
-- ready.
create function core.check_posting() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_wrong  uuid;
begin
  select n.entry_id into v_wrong
  from new_posting n
  left join core.ledger_entry l
    on l.tenant_id = n.tenant_id and l.entry_id = n.entry_id and l.distributor_id = n.distributor_id
  left join core.ledger_book b on b.tenant_id = n.tenant_id and b.party_id = n.distributor_id
  where l.entry_id is null or b.party_id is null
  limit 1;
  if found then
    raise exception 'ledger entry % does not belong to this distributor, or it has no ledger book',
      v_wrong
      using errcode = 'foreign_key_violation', constraint = 'posting_is_of_its_distributor';
  end if;
  if exists (
    select
    from new_posting n
    join core.statement s using (tenant_id, distributor_id, business_date))
  then
    raise exception 'a closed business day gets no more entries'
      using errcode = 'check_violation', constraint = 'closed_day_is_closed';
  end if;
  return null;
end
$$;
comment on function core.check_posting() is
  'Trigger: a business day gets entries of its distributor, and none once it is closed.';

create trigger closed_day_is_closed
after insert on core.posting
referencing new table as new_posting
for each statement execute function core.check_posting();

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
create trigger posting_is_immutable before update or delete or truncate on core.posting
for each statement execute function core.refuse_change();

create function core.check_book_change() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id, new.party_id) <> (old.tenant_id, old.party_id)
     or new.open_on < old.open_on
  then
    raise exception 'the open day of a ledger book never moves back, and its key is fixed'
      using errcode = 'check_violation', constraint = 'open_day_goes_forward';
  end if;
  return new;
end
$$;
comment on function core.check_book_change() is
  'Trigger: the open day of a distributor never moves back.';

create trigger open_day_goes_forward
before update on core.ledger_book
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
