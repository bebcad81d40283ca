-- The cell in which a tenant lives, as far as this router knows. Volatile, so that it sees what
-- this statement has noted. PL/pgSQL keeps its plan: in SQL, planning it took a third of the time
-- that a call needs in the router.
create or replace function router.find_cell(p_tenant_id int) returns int
language plpgsql volatile as $$
begin
  return coalesce(
    (select t.cell from router.tenant t where t.tenant_id = p_tenant_id),
    (p_tenant_id - 1) / 1000000 + 1);
end
$$;
