-- The secrets that sign for a webhook, the current one first. There are at most ten, because
-- receivers limit the length of a header.
create or replace function rules.read_signing_secrets(p_webhook core.webhook) returns bytea[]
language plpgsql stable as $$
begin
  return p_webhook.sealed_secret || array(
    select s.sealed_secret
    from core.replaced_secret s
    where s.tenant_id = p_webhook.tenant_id
      and s.party_id = p_webhook.party_id
      and s.replaced_at > clock_timestamp() - interval '24 hours'
    order by s.replaced_at desc
    limit 9);
end
$$;
