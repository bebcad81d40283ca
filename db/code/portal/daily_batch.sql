-- Of batches that the company makes, or whose statements it gets.
create or replace view portal.daily_batch as
select d.*
from report.daily_batch d
where d.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*'
       or (select portal.find_party()) in (d.maker, d.distributor));
