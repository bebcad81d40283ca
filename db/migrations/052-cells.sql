-- A cell is a whole PostgreSQL with some of the tenants. Its number is a setting of its server,
-- coupon.cell, because rows travel to a standby and settings do not. Without the setting, it is 1.
create function core.read_cell() returns smallint
language sql stable
return coalesce(nullif(current_setting('coupon.cell', true), ''), '1')::smallint;
comment on function core.read_cell() is 'The number of this cell.';

create table core.cell (
  is_this  boolean   primary key default true,
  number   smallint  not null,
  constraint cell_is_one_row check (is_this),
  constraint cell_is_1_to_999 check (number between 1 and 999)
);
comment on table core.cell is
  'The number of the cell that this database is. If it is not that of the server''s coupon.cell, '
  'the database is a copy, or its server lost the setting: no program starts.';
comment on column core.cell.is_this is 'Keeps the table to one row.';
insert into core.cell (number) values (core.read_cell());

alter table core.tenant
  add column home smallint not null default core.read_cell(),
  add column fence int,
  add column drained int,
  add constraint home_is_1_to_999 check (home between 1 and 999);
comment on column core.tenant.home is
  'The cell that serves this tenant. Another cell refuses its calls and does none of its work.';
comment on column core.tenant.fence is
  'The attempt to move the tenant to another cell that has closed it for now. Null: it is open.';
comment on column core.tenant.drained is
  'The attempt before whose fence every call has ended. The log carries this behind those calls, '
  'so a copy of the cell that has it is complete.';
create sequence core.fence_seq as int;
comment on sequence core.fence_seq is 'Numbers of attempts to move tenants.';

-- The tenants of a cell are numbered from (number - 1) * 1,000,000 + 1, so that no two cells ever
-- have the same.
create function core.refuse_foreign_id() returns trigger
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id - 1) / 1000000 + 1 <> new.home then
    raise exception 'a tenant of cell % cannot have the number %', new.home, new.tenant_id
      using errcode = 'check_violation', constraint = 'tenant_id_is_of_its_first_home',
            hint = 'Join this cell to its router: coupon cells add.';
  end if;
  return new;
end
$$;
comment on function core.refuse_foreign_id() is
  'Trigger: a new tenant has a number from the range of its cell.';
create trigger tenant_id_is_of_its_first_home before insert on core.tenant
for each row execute function core.refuse_foreign_id();
select setval('core.tenant_tenant_id_seq', (core.read_cell() - 1) * 1000000 + 1, false)
where not exists (select from core.tenant) and core.read_cell() > 1;
