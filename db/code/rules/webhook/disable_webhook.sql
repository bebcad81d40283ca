-- Stops deliveries to a subscriber, parks those that wait, and drops the test events that wait.
create or replace function rules.disable_webhook(
  p_tenant_id int, p_party_id int, p_reason text)
returns void
language sql volatile
begin atomic
  update core.webhook w
  set disabled_at = coalesce(w.disabled_at, clock_timestamp())
  where w.tenant_id = p_tenant_id and w.party_id = p_party_id;
  update core.delivery d
  set parked_at = clock_timestamp(), last_error = p_reason
  where d.tenant_id = p_tenant_id and d.party_id = p_party_id and d.parked_at is null;
  delete from core.test_delivery d
  where d.tenant_id = p_tenant_id and d.party_id = p_party_id;
end;
