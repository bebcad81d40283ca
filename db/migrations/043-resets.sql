-- A reset empties a sandbox. The tables that keep their rows let go of those of a sandbox, in the
-- transaction that has written to core.audit that it resets it. So no reset is without its record.
create function core.is_being_reset(p_tenant_id int) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  -- first, so that no other tenant pays for the search
  if (select t.is_sandbox from core.tenant t where t.tenant_id = p_tenant_id) is not true then
    return false;
  end if;
  return exists (
    select
    from core.audit a
    where a.tenant_id = p_tenant_id
      and a.action = 'reset_sandbox'
      and a.details ->> 'transaction' = pg_current_xact_id()::text);
end
$$;
comment on function core.is_being_reset(int) is
  'Whether this transaction resets the tenant, which is a sandbox. admin.reset_sandbox writes the '
  'audit row that opens its tables.';

create function core.keep_rows() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' and exists (
    select
    from core.audit a
    where a.action = 'reset_sandbox'
      and a.details ->> 'transaction' = pg_current_xact_id()::text)
  then
    return null;
  end if;
  raise exception '%.% keeps its rows: % refused', tg_table_schema, tg_table_name, lower(tg_op)
    using errcode = 'integrity_constraint_violation';
end
$$;
comment on function core.keep_rows() is
  'Trigger: like core.refuse_change, but the reset of a sandbox may delete rows. '
  'core.check_deletion then looks whose they are.';

create function core.check_deletion() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if exists (
    select
    from (select distinct o.tenant_id from old_row o) d
    where not core.is_being_reset(d.tenant_id))
  then
    raise exception '%.% keeps its rows: delete refused', tg_table_schema, tg_table_name
      using errcode = 'integrity_constraint_violation',
            hint = 'The reset of a sandbox deletes only its own rows.';
  end if;
  return null;
end
$$;
comment on function core.check_deletion() is
  'Trigger: all deleted rows are of a sandbox that this transaction resets.';

create or replace trigger batch_is_kept
before delete or truncate on core.batch
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.batch
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger batch_line_is_immutable
before update or delete or truncate on core.batch_line
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.batch_line
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger coupon_is_kept
before delete or truncate on core.coupon
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.coupon
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger event_is_immutable
before update or delete or truncate on core.event
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.event
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger feed_is_kept
before delete or truncate on core.feed
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.feed
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger ledger_book_is_kept
before delete or truncate on core.ledger_book
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.ledger_book
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger ledger_is_immutable
before update or delete or truncate on core.ledger_entry
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.ledger_entry
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger merchant_page_is_immutable
before update or delete or truncate on core.merchant_page
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.merchant_page
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger posting_page_is_immutable
before update or delete or truncate on core.posting_page
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.posting_page
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger redemption_is_kept
before delete or truncate on core.redemption
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.redemption
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger reversal_is_kept
before update or delete or truncate on core.reversal
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.reversal
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger statement_is_kept
before delete or truncate on core.statement
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.statement
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger statement_line_is_immutable
before update or delete or truncate on core.statement_line
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.statement_line
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger store_line_is_immutable
before update or delete or truncate on core.store_line
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.store_line
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace trigger voiding_is_kept
before update or delete or truncate on core.voiding
for each statement execute function core.keep_rows();
create trigger only_a_reset_deletes after delete on core.voiding
referencing old table as old_row
for each statement execute function core.check_deletion();

create or replace function core.check_feed_pruning() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
begin
  if not exists (
    select
    from (select distinct o.tenant_id from old_page o) d
    where not core.is_being_reset(d.tenant_id))
  then
    return null;
  elsif exists (
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
  'Trigger: no page is deleted within a day, or while an older one of its feed is kept, except by '
  'the reset of a sandbox.';

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
      and a.http_status between 200 and 299)
    and not core.is_being_reset(o.tenant_id)
  limit 1;
  if found then
    raise exception 'delivery %: its subscriber has not accepted the event',
      core.format_id('evt', v_lost)
      using errcode = 'check_violation', constraint = 'delivery_is_kept_until_accepted',
            hint = 'Disable the webhook to stop its deliveries.';
  end if;
  return null;
end
$$;

comment on function core.check_delivered() is
  'Trigger: a delivery is deleted by the transaction that records that its subscriber accepted it, '
  'or by the reset of a sandbox.';
