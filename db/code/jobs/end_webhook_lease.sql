-- Ends the lease of a subscriber. lease_until keeps the time, because list_due_webhooks puts
-- the subscriber that has waited longest first.
create or replace function jobs.end_webhook_lease(p_tenant_id int, p_party_id int, p_holder uuid)
returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  update core.webhook w
  set holder = null, worker = null, lease_until = clock_timestamp()
  where w.tenant_id = p_tenant_id and w.party_id = p_party_id and w.holder = p_holder;
end;
