-- A business day is closed before the next one opens.

-- At commit, because closing a day moves the book before it counts the entries of the day.
create function core.check_closing() returns trigger
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
    raise exception 'a book cannot move from % to %: it moves day by day, after a statement',
      old.open_on, new.open_on
      using errcode = 'check_violation', constraint = 'day_is_closed_before_the_next_opens';
  end if;
  return null;
end
$$;
comment on function core.check_closing() is
  'Deferred trigger: a book moves day by day, and each day that it leaves has its statement.';

create constraint trigger day_is_closed_before_the_next_opens
after update of open_on on core.ledger_book
deferrable initially deferred
for each row execute function core.check_closing();

create function core.check_new_statement() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if new.business_date >= (
    select b.open_on
    from core.ledger_book b
    where b.tenant_id = new.tenant_id and b.party_id = new.distributor_id)
  then
    raise exception 'statement of %: the day is still open', new.business_date
      using errcode = 'check_violation', constraint = 'open_day_has_no_statement',
            hint = 'Closing a day moves its book first, in the same transaction.';
  end if;
  return null;
end
$$;
comment on function core.check_new_statement() is
  'Trigger: a day gets its statement when the book has left it. One that is written earlier would '
  'stop the sequencer, which posts to the open day.';

create trigger open_day_has_no_statement
after insert on core.statement
for each row execute function core.check_new_statement();
