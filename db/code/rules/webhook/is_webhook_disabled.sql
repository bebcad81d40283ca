-- Whether a webhook is switched off. Reads the latest row, so hold the webhook first.
create or replace function rules.is_webhook_disabled(p_tenant_id int, p_party_id int)
returns boolean
language plpgsql stable as $$
begin
  return (
    select w.disabled_at is not null
    from core.webhook w
    where w.tenant_id = p_tenant_id and w.party_id = p_party_id);
end
$$;
