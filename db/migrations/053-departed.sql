-- After a split, each half has the rows of the tenants that live in the other one. They are deleted
-- a day later, in steps (jobs.clear_departed). Until then they are a copy of what the tenant had.
alter table core.tenant
  add column left_at timestamptz,
  add column cleared_at timestamptz,
  add constraint cleared_tenant_has_left check (cleared_at is null or left_at is not null);
comment on column core.tenant.left_at is
  'When it moved to another cell: what this database has of it is deleted a day later. Infinity: '
  'its split has not ended. Null: it lives here.';
comment on column core.tenant.cleared_at is
  'When the last of its rows here was deleted. Null: it lives here, or has rows left.';
create index tenant_has_left on core.tenant (tenant_id) where left_at is not null;
update core.tenant set left_at = 'infinity' where home <> (select c.number from core.cell c);

create function core.is_departed(p_tenant_id int) returns boolean
language sql stable
return exists (
  select
  from core.tenant t
  where t.tenant_id = p_tenant_id and t.left_at is not null and t.home <> core.read_cell())
and exists (select from core.cell c where c.is_this and c.number = core.read_cell());
comment on function core.is_departed(int) is
  'Whether a tenant has left this cell for another one. False of all tenants if the database is a '
  'copy, or its server lost the number of the cell.';

create function core.may_lose_rows(p_tenant_id int) returns boolean
language sql stable
return core.is_departed(p_tenant_id) or core.is_being_reset(p_tenant_id);
comment on function core.may_lose_rows(int) is
  'Whether this transaction may delete rows of a tenant that are otherwise kept: it has left for '
  'another cell, or is a sandbox that is reset.';

create or replace function core.keep_rows() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'DELETE' and (
    exists (select from core.tenant t where t.left_at is not null and t.cleared_at is null)
    or exists (
      select
      from core.audit a
      where a.action = 'reset_sandbox'
        and a.details ->> 'transaction' = pg_current_xact_id()::text))
  then
    return null;
  end if;
  raise exception '%.% keeps its rows: % refused', tg_table_schema, tg_table_name, lower(tg_op)
    using errcode = 'integrity_constraint_violation';
end
$$;
comment on function core.keep_rows() is
  'Trigger: like core.refuse_change, but a delete may begin while a tenant that has left has rows, '
  'or if this transaction resets a sandbox. core.check_deletion then looks whose the rows are.';

create or replace function core.check_deletion() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if exists (
    select
    from (select distinct o.tenant_id from old_row o offset 0) d  -- so that it asks once a tenant
    where not core.may_lose_rows(d.tenant_id))
  then
    raise exception '%.% keeps its rows: delete refused', tg_table_schema, tg_table_name
      using errcode = 'integrity_constraint_violation',
            hint = 'A reset deletes only rows of its sandbox, and a clearing those of who left.';
  end if;
  return null;
end
$$;
comment on function core.check_deletion() is
  'Trigger: all deleted rows are of tenants that may lose them (core.may_lose_rows).';

create or replace function core.check_feed_pruning() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
begin
  if not exists (
    select
    from (select distinct o.tenant_id from old_page o offset 0) d
    where not core.may_lose_rows(d.tenant_id))
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
  'Trigger: no page is deleted within a day, or while an older one of its feed is kept, except of '
  'tenants that may lose their rows.';

create or replace function core.check_delivered() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set enable_material = off as $$
declare
  v_lost  uuid;
begin
  select d.event_id into v_lost
  from (
    select o.tenant_id, o.event_id
    from old_delivery o
    where not exists (
      select
      from core.delivery_attempt a
      where a.tenant_id = o.tenant_id
        and a.party_id = o.party_id
        and a.attempted_at >= now()  -- recorded by this transaction
        and a.event_id = o.event_id
        and a.http_status between 200 and 299)
    offset 0) d  -- so that it asks only about deliveries that were not accepted
  where not core.may_lose_rows(d.tenant_id)
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
  'or if its tenant may lose its rows.';

alter trigger only_a_reset_deletes on core.batch rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.batch_line rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.coupon rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.event rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.feed rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.ledger_book rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.ledger_entry rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.merchant_page rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.posting_page rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.redemption rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.reversal rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.statement rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.statement_line rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.store_line rename to tenant_may_lose_rows;
alter trigger only_a_reset_deletes on core.voiding rename to tenant_may_lose_rows;
