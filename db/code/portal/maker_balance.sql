-- Variant A: of all makers of the tenant. Variant B: of the party as a maker.
create or replace view portal.maker_balance as
select b.*
from report.maker_balance b
where b.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or b.maker = (select portal.find_party()));
