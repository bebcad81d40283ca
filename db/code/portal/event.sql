-- The events of the company: those of its feed.
create or replace view portal.event as
select e.*
from report.event e
where e.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or e.party = (select portal.find_party()));
