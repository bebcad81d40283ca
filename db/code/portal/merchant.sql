-- The merchants that the company may act for: rules.may_act_for.
create or replace view portal.merchant as
select m.*
from report.merchant m
where m.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*'
       or m.party = (select portal.find_party())
       or (select portal.find_party()) = any (m.delegates));
