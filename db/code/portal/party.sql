-- Variant A: the parties of the tenant. Variant B: the party itself.
create or replace view portal.party as
select p.*
from report.party p
where p.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or p.party = (select portal.find_party()));
