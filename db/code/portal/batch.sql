-- Variant A: the batches of the tenant. Variant B: those that the party makes, and those that were
-- released to it.
create or replace view portal.batch as
select b.*
from report.batch b
where b.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*'
       or b.maker = (select portal.find_party())
       or (b.distributor = (select portal.find_party()) and b.status = 'ALLOCATED'));
