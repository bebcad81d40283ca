-- Work that is stuck now, without that of tenants that have left for another cell. A row of
-- `events` is deleted when its party goes on. All other work is tried at least once a minute, so an
-- older row is about work that was cured.
create or replace view rules.stuck_work as
select s.tenant_id, s.party_id, s.work, s.subject, s.reason, s.since, s.tried_at
from core.stuck_work s
join core.tenant t on t.tenant_id = s.tenant_id and t.left_at is null
where s.work = 'events' or s.tried_at > now() - interval '3 minutes';
