-- Takes or renews the lease of a subscriber for 60 s and returns the deliveries that are due.
-- Returns no row if nothing is due, another worker holds the lease, or the session of this worker
-- is gone. One worker at a time serves a subscriber, so its limit of concurrent requests holds. A
-- lease no longer counts once the session of its worker is gone.
--
-- Test events come first, because a person is waiting for them. They have a test_body and a
-- test_event_type; a real event has its fields (rules.describe_event). Redemptions come before
-- expiries: see rules.find_due_deliveries.
--
-- From now on the attempts of p_holder count for what was replayed before.
--
-- sealed_secrets has the secrets that sign, the current one first.
create or replace function jobs.lease_deliveries(
  p_tenant_id int, p_party_id int, p_worker int, p_holder uuid, p_limit int,
  out event_id uuid, out external_id text, out event text, out test_body text, out attempt int,
  out url text, out sealed_secrets bytea[], out tenant text, out party text,
  out test_event_type text)
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_webhook  core.webhook;
  v_secrets  bytea[];
  v_tests    int;
begin
  update core.webhook w
  set holder = p_holder, worker = p_worker,
      lease_until = clock_timestamp() + interval '60 seconds'
  where w.tenant_id = p_tenant_id
    and w.party_id = p_party_id
    and w.disabled_at is null
    and rules.is_served(w.tenant_id)
    and (w.holder is null or w.lease_until <= clock_timestamp() or w.holder = p_holder
         or rules.is_worker_gone(w.worker))
    and not rules.is_worker_gone(p_worker)
    and (w.paused_until is null or w.paused_until <= clock_timestamp())
  returning * into v_webhook;
  if not found then
    return;
  end if;
  v_secrets := rules.read_signing_secrets(v_webhook);
  return query
  select x.event_id, rules.format_id('evt', x.event_id), null::text, x.body, 1,
         v_webhook.url, v_secrets, t.external_id, p.external_id, x.event_type
  from core.test_delivery x
  join core.tenant t on t.tenant_id = x.tenant_id
  join core.party p on p.tenant_id = x.tenant_id and p.party_id = x.party_id
  where x.tenant_id = p_tenant_id and x.party_id = p_party_id
  limit p_limit;
  get diagnostics v_tests = row_count;
  return query
  with due as materialized (
    select p_tenant_id as tenant_id, d.*
    from rules.find_due_deliveries(p_tenant_id, p_party_id, p_limit - v_tests) d),
  counting as (
    update core.delivery d
    set counts_for = p_holder
    from due
    where d.tenant_id = due.tenant_id
      and d.party_id = p_party_id
      and d.event_id = due.event_id
      and due.counts_for <> p_holder)
  select d.event_id, rules.format_id('evt', d.event_id),
         case
           when d.is_expanded then rules.describe_expanded_event(e)
           else rules.describe_event(e)
         end,
         null::text, d.attempt_count + 1, v_webhook.url, v_secrets, t.external_id, p.external_id,
         null::text
  from due d
  join rules.event e on e.tenant_id = d.tenant_id and e.event_id = d.event_id
  join core.tenant t on t.tenant_id = d.tenant_id
  join core.party p on p.tenant_id = d.tenant_id and p.party_id = p_party_id
  order by d.turn;
end
$$;
