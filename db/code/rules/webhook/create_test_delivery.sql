-- Queues a test event for the worker, and returns its ID. It replaces a waiting test of the same
-- type, so tests never pile up. The caller holds the webhook.
create or replace function rules.create_test_delivery(
  p_tenant_id int, p_party_id int, p_event_type text)
returns uuid
language plpgsql volatile as $$
declare
  v_event_id  uuid := rules.make_id();
  v_now       timestamptz := clock_timestamp();
begin
  insert into core.test_delivery (tenant_id, party_id, event_type, event_id, body, created_at)
  values (p_tenant_id, p_party_id, p_event_type, v_event_id,
          rules.render_test_event(v_event_id, p_event_type, v_now, (
            select w.expand
            from core.webhook w
            where w.tenant_id = p_tenant_id and w.party_id = p_party_id)), v_now)
  on conflict (tenant_id, party_id, event_type) do update
  set event_id = excluded.event_id, body = excluded.body, created_at = excluded.created_at;
  return v_event_id;
end
$$;
