-- Attempts at the webhook of the company.
create or replace view portal.delivery_attempt as
select a.*
from report.delivery_attempt a
where a.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or a.party = (select portal.find_party()));
