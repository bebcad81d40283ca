-- Each object that a provisioning changed, with its changed fields old and new. p_before, p_after:
-- what rules.describe_provisioned returned. Of a secret, it says only that it was replaced; of a
-- URL, it shows only the host, because the rest may hold a token.
create or replace function rules.describe_changes(p_tenant text, p_before jsonb, p_after jsonb)
returns jsonb
language sql immutable
begin atomic
  select coalesce(jsonb_agg(jsonb_build_object(
           'tenant', p_tenant, 'target', c.target, 'fields', coalesce(c.fields, '{}'))
           order by c.target collate "C"), '[]')
  from (
    select o.key as target, (
             select jsonb_object_agg(coalesce(n.key, b.key), case
                      when coalesce(n.key, b.key) in ('secret', 'webhook_secret')
                        then '"replaced"'
                      when coalesce(n.key, b.key) = 'webhook_url' then jsonb_build_object(
                        'old', rules.format_url_host(b.value #>> '{}'),
                        'new', rules.format_url_host(n.value #>> '{}'))
                      else jsonb_build_object('old', b.value, 'new', n.value)
                    end)
             from jsonb_each(p_before -> o.key) b
             full join jsonb_each(o.value) n on n.key = b.key
             where b.value is distinct from n.value
               -- A new credential or webhook always has a secret.
               and (b.value is not null
                    or coalesce(n.key, b.key) not in ('secret', 'webhook_secret'))) as fields
    from jsonb_each(p_after) o
    where p_before -> o.key is distinct from o.value) c;
end;
