create or replace view report.party as
select t.external_id as tenant, p.external_id as party, p.name, p.time_zone,
       w.url as webhook_url, w.rotated_at as webhook_secret_rotated_at,
       w.disabled_at as webhook_disabled_at, p.created_at
from core.party p
join core.tenant t using (tenant_id)
left join core.webhook w using (tenant_id, party_id);
comment on view report.party is 'Parties and their webhooks.';
