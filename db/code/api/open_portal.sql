-- POST /v1/portal makes a link that opens the portal once, for the caller's company. The HTTP layer
-- adds the link: no table holds what is needed to use it. Links that have expired go at the same
-- time.
create or replace function api.open_portal(p_call core.call) returns core.answer
language plpgsql volatile as $$
declare
  v_link_id     uuid := rules.make_id();
  v_now         timestamptz := clock_timestamp();
  v_expires_at  timestamptz := v_now + interval '10 minutes';
begin
  -- write
  delete from core.portal_link l
  where l.link_id = any (array(
    select x.link_id
    from core.portal_link x
    where x.expires_at <= v_now
    order by x.expires_at
    limit 100
    for update skip locked));
  insert into core.portal_link (link_id, tenant_id, credential_id, created_at, expires_at)
  values (v_link_id, p_call.tenant_id, p_call.credential_id, v_now, v_expires_at);

  -- answer
  return rules.succeed(format('{"ok":true,"portal_link":"%s","expires_at":"%s"}',
    rules.format_id('lnk', v_link_id), rules.format_time(v_expires_at)));
end
$$;
