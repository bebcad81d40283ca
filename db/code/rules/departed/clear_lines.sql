-- Deletes lines of statements and recalled locks of a tenant that has left, at most p_limit of each
-- table. Returns how many.
create or replace function rules.clear_lines(p_tenant_id int, p_limit int) returns int
language sql volatile
begin atomic
  with statement_line as (
    delete from core.statement_line d
    where d.ctid = any (array(
      select o.ctid from core.statement_line o where o.tenant_id = p_tenant_id limit p_limit))
    returning 1),
  store_line as (
    delete from core.store_line d
    where d.ctid = any (array(
      select o.ctid from core.store_line o where o.tenant_id = p_tenant_id limit p_limit))
    returning 1),
  batch_line as (
    delete from core.batch_line d
    where d.ctid = any (array(
      select o.ctid from core.batch_line o where o.tenant_id = p_tenant_id limit p_limit))
    returning 1),
  recalled_lock as (
    delete from core.recalled_lock d
    where d.ctid = any (array(
      select o.ctid from core.recalled_lock o where o.tenant_id = p_tenant_id limit p_limit))
    returning 1)
  select (
    (select count(*) from statement_line)
    + (select count(*) from store_line)
    + (select count(*) from batch_line)
    + (select count(*) from recalled_lock))::int;
end;
