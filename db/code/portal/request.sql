-- The writes that the company has sent, whichever access key it used.
create or replace view portal.request as
select r.*
from report.request r
where r.tenant = (select portal.find_tenant())
  and coalesce(r.caller, '*') = (select portal.find_party());
