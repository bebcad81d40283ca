create or replace function admin.replay_event(p_tenant text, p_event text, p_reason text)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_reason  text := rules.check_reason(p_reason);
  v_event   rules.sequenced_event;
begin
  select e.* into v_event
  from core.tenant t
  join rules.sequenced_event e
    on e.tenant_id = t.tenant_id and e.event_id = rules.parse_id('evt', p_event)
  join core.webhook w on w.tenant_id = e.tenant_id and w.party_id = e.party_id
  where t.external_id = p_tenant;
  if not found then
    raise exception 'tenant % has no event % for a party with a webhook', p_tenant, p_event
      using errcode = 'CP404';
  end if;
  if not rules.is_type_taken(
    rules.list_event_types(v_event.tenant_id, v_event.party_id), v_event.event_type)
  then
    raise exception 'the webhook does not take % events', v_event.event_type
      using errcode = 'CP409';
  end if;
  perform rules.replay_deliveries(v_event.tenant_id, v_event.party_id, array[v_event.event_id]);
  perform rules.write_audit(v_event.tenant_id, 'replay_event', p_event, v_reason,
    jsonb_build_object('party', (
      select p.external_id
      from core.party p
      where p.tenant_id = v_event.tenant_id and p.party_id = v_event.party_id)));
end
$$;
comment on function admin.replay_event(text, text, text) is
  'Sends one event to its subscriber again with the same webhook-id, even if it was delivered. An '
  'event that the sequencer has not processed counts as unknown: the sequencer is about to make '
  'its delivery, and would wait until this transaction ends.';
