-- Variant A: of all distributors of the tenant. Variant B: of the party as a distributor.
create or replace view portal.distributor_balance as
select b.*
from report.distributor_balance b
where b.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or b.distributor = (select portal.find_party()));
