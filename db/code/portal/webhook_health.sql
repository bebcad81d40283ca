-- Variant A: the webhooks of the tenant. Variant B: that of the party.
create or replace view portal.webhook_health as
select w.*
from report.webhook_health w
where w.tenant = (select portal.find_tenant())
  and ((select portal.find_party()) = '*' or w.party = (select portal.find_party()));
