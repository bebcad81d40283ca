-- The tenants that have left for another cell. Work for them is left out, even if they are not
-- cleared yet: the other cell does it.
create or replace function rules.find_departed() returns int[]
language sql stable
return array(
  select t.tenant_id
  from core.tenant t
  where t.left_at is not null and t.home <> core.read_cell());
