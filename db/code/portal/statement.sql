-- The closed days of the company, once their files are ready.
create or replace view portal.statement as
select s.*
from report.statement s
where s.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or s.distributor = (select portal.find_party()))
  and s.ready_at is not null;
