create or replace view report.party as
select t.external_id as tenant, p.external_id as party, p.name, p.time_zone,
       rules.format_url_host(w.url) as webhook_url, w.rotated_at as webhook_secret_rotated_at,
       w.disabled_at as webhook_disabled_at, p.created_at, p.public_key
from core.party p
join core.tenant t using (tenant_id)
left join core.webhook w using (tenant_id, party_id);
comment on view report.party is '@primaryKey tenant,party
@foreignKey (tenant) references report.tenant (tenant)
Parties and their webhooks.';
comment on column report.party.tenant is 'External ID, ten_….';
comment on column report.party.party is 'External ID, pty_….';
comment on column report.party.name is 'As provisioned; need not be unique.';
comment on column report.party.time_zone is
  'IANA name. Its midnight ends the business days of a distributor.';
comment on column report.party.webhook_url is
  'Its scheme and host: the rest may hold a token, so only '
  'admin.list_webhooks shows it. Null: no webhook, the party can only pull.';
comment on column report.party.webhook_secret_rotated_at is
  'When the secret was last replaced. The old one also signs for 24 hours after that. Null: it was '
  'never replaced.';
comment on column report.party.webhook_disabled_at is
  'When deliveries to its webhook stopped. Null: the webhook is enabled, or there is none.';
comment on column report.party.created_at is 'When apply first declared it.';
comment on column report.party.public_key is
  'The X25519 key (age1…) that codes are encrypted to. Null: the party cannot fetch codes by HTTP.';
