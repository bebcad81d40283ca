-- Locks a webhook for a patch, by the IDs that a DBA has.
create or replace function rules.hold_webhook_for_patch(p_tenant text, p_party text)
returns core.webhook
language plpgsql volatile as $$
declare
  v_webhook  core.webhook;
begin
  select w.* into v_webhook
  from core.tenant t
  join core.party p on p.tenant_id = t.tenant_id and p.external_id = p_party
  join core.webhook w on w.tenant_id = p.tenant_id and w.party_id = p.party_id
  where t.external_id = p_tenant
  for no key update of w;
  if not found then
    raise exception 'tenant % has no party % with a webhook', p_tenant, p_party
      using errcode = 'CP404';
  end if;
  return v_webhook;
end
$$;
