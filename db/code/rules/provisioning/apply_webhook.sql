-- Creates or updates the webhook of a party. A replaced secret keeps signing for 24 h
-- (core.replaced_secret). A changed URL enables the webhook again. It ends the lease and the pause,
-- because they belong to the old receiver, whose answers no longer matter. If the file names no
-- expand or event_types, they are false and all.
create or replace function rules.apply_webhook(
  p_tenant_id int, p_party_id int, p_hook jsonb, out changed int, out is_new boolean)
language plpgsql volatile as $$
declare
  v_expand  boolean := coalesce((p_hook ->> 'expand')::boolean, false);
  v_types   text[] := (
    select array_agg(x.value order by x.value collate "C")
    from jsonb_array_elements_text(p_hook -> 'event_types') x);
  v_rows    int;
begin
  insert into core.webhook as w
    (tenant_id, party_id, url, sealed_secret, secret_hash, expand, event_types)
  values (p_tenant_id, p_party_id, p_hook ->> 'url', decode(p_hook ->> 'sealed_secret', 'hex'),
          decode(p_hook ->> 'secret_hash', 'hex'), v_expand, v_types)
  on conflict (tenant_id, party_id) do nothing;
  get diagnostics changed = row_count;
  is_new := found;
  if is_new then
    return;
  end if;
  update core.webhook w
  set url = p_hook ->> 'url', disabled_at = null, paused_until = null,
      holder = null, worker = null, lease_until = null
  where w.tenant_id = p_tenant_id and w.party_id = p_party_id and w.url <> p_hook ->> 'url';
  get diagnostics changed = row_count;
  update core.webhook w
  set expand = v_expand, event_types = v_types
  where w.tenant_id = p_tenant_id
    and w.party_id = p_party_id
    and (w.expand, w.event_types) is distinct from (v_expand, v_types);
  get diagnostics v_rows = row_count;
  changed := changed + v_rows;
  update core.webhook w
  set sealed_secret = decode(p_hook ->> 'sealed_secret', 'hex'),
      secret_hash = decode(p_hook ->> 'secret_hash', 'hex')
  where w.tenant_id = p_tenant_id
    and w.party_id = p_party_id
    and not (p_hook ->> 'is_generated')::boolean
    and encode(w.secret_hash, 'hex') <> p_hook ->> 'secret_hash'
    and not coalesce(p_hook -> 'other_hashes', '[]') ? encode(w.secret_hash, 'hex');
  get diagnostics v_rows = row_count;
  changed := changed + v_rows;
end
$$;
