-- The lines of the company's closed days, also before their files are ready.
create or replace view portal.statement_line as
select l.*
from report.statement_line l
where l.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or l.distributor = (select portal.find_party()));
