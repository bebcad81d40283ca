-- The database of a router: a PostgreSQL with PL/Proxy in front of the cells, for serve. It stores
-- where tenants live, which it learns by asking the cells, so nothing here has to be backed up.
-- `coupon router migrate` runs this each time, as a superuser: PL/Proxy is an untrusted language.
create extension if not exists plproxy with schema public;
create extension if not exists postgres_fdw with schema public;
do $$
begin
  if not exists (select from pg_foreign_data_wrapper w where w.fdwname = 'cells') then
    -- Connections to cells that a process no longer needs are closed some time.
    create foreign data wrapper cells validator public.plproxy_fdw_validator
      options (connection_lifetime '600');
  end if;
end
$$;
do $$
begin
  -- The planner leaves out cells in which a tenant does not live.
  execute format('alter database %I set constraint_exclusion = on', current_database());
end
$$;
create schema if not exists core authorization coupon_owner;
create schema if not exists router authorization coupon_owner;
create schema if not exists remote authorization coupon_owner;
create schema if not exists gate authorization coupon_owner;
create schema if not exists rules authorization coupon_owner;
create schema if not exists report authorization coupon_owner;
comment on schema router is 'Where tenants live, and how to reach the cells.';
comment on schema remote is 'Functions of the cells, by PL/Proxy.';
comment on schema gate is 'Everything that coupon_api may call, as in a cell.';
comment on schema report is
  'The reports of all cells, with the cell of each row.';
comment on schema rules is 'What coupon_api calls in the schema rules of a cell.';

-- The same as in a cell.
do $$
begin
  if to_regtype('core.answer') is null then
    create type core.answer as (
      http_status int, code text, resource text, body text, ordinal int, is_replay boolean,
      redemption_id uuid, coupon_id uuid, discount_amount numeric, currency text,
      lock_expires_at timestamptz);
    alter type core.answer owner to coupon_owner;
  end if;
end
$$;

set role coupon_owner;
create unlogged table if not exists router.tenant (
  tenant_id  int       primary key,
  cell       smallint  not null
);
comment on table router.tenant is
  'Tenants that do not live in the cell that their number says, because a split has moved them.';
create table if not exists router.version (
  is_current  boolean  primary key default true,
  migration   text     not null,
  code        text     not null
);
comment on table router.version is
  'The version that made this router, and the previous one, whose programs can still run.';
reset role;
