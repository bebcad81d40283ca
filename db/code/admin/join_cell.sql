create or replace function admin.join_cell(p_number int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if core.read_server_cell() <> p_number then
    raise exception 'the server says that it is cell %', core.read_server_cell()
      using errcode = 'CP409',
            hint = format('Set coupon.cell = ''%s'' in its postgresql.conf and reload.', p_number);
  end if;
  if exists (select from core.tenant t where t.home <> p_number) then
    raise exception 'this database has tenants of another cell' using errcode = 'CP409';
  end if;
  update core.cell c set number = p_number where c.number <> p_number;
  if found then
    perform setval('core.tenant_tenant_id_seq', (p_number - 1) * 1000000 + 1, false);
  end if;
end
$$;
comment on function admin.join_cell(int) is
  'Makes this database the cell of its server''s coupon.cell: its tenants get numbers from the '
  'range of the cell.';
