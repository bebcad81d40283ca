create or replace function admin.list_webhooks(out tenant text, out party text, out url text)
returns setof record
language sql stable security definer set search_path = pg_catalog, pg_temp
begin atomic
  select t.external_id, p.external_id, w.url
  from core.webhook w
  join core.tenant t using (tenant_id)
  join core.party p using (tenant_id, party_id)
  order by 1, 2;
end;
comment on function admin.list_webhooks() is
  'The whole URL of each webhook. It may hold a token of the receiver, so the views of report show '
  'only its host.';
