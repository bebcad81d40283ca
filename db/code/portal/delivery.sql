-- What still waits for the webhook of the company.
create or replace view portal.delivery as
select d.*
from report.delivery d
where d.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or d.party = (select portal.find_party()));
