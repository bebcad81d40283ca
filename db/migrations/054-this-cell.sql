-- The number of this cell is what the database and its server both say. If they differ, the
-- database is a copy, or its server has lost the setting: it serves no tenant.
create function core.read_server_cell() returns smallint
language sql stable
return coalesce(nullif(current_setting('coupon.cell', true), ''), '1')::smallint;
comment on function core.read_server_cell() is
  'The number of the cell that the server says: coupon.cell, or 1 without it.';
create or replace function core.read_cell() returns smallint
language sql stable security definer set search_path = pg_catalog, pg_temp
return (select c.number from core.cell c where c.number = core.read_server_cell());
comment on function core.read_cell() is
  'The number of this cell. Null: the server says another one than the database.';

create or replace function core.refuse_foreign_id() returns trigger
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  if (new.tenant_id - 1) / 1000000 + 1 is distinct from new.home then
    raise exception 'a tenant of cell % cannot have the number %',
      coalesce(new.home, core.read_server_cell()), new.tenant_id
      using errcode = 'check_violation', constraint = 'tenant_id_is_of_its_first_home',
            hint = 'Join this cell to its router: coupon cells add.';
  end if;
  return new;
end
$$;

-- Reports leave out tenants that a cell has taken and not yet opened: the other cell may still have
-- them.
alter table core.cell add column attempt int;
comment on column core.cell.attempt is
  'The attempt whose tenants this cell has taken last. Null: it was made without a split.';
