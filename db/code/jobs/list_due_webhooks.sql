-- Subscribers with due deliveries that no worker is serving, or whose worker is gone. The one that
-- has waited longest comes first.
create or replace function jobs.list_due_webhooks(p_limit int, out tenant_id int, out party_id int)
returns setof record
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select w.tenant_id, w.party_id
  from core.webhook w
  where w.disabled_at is null
    and rules.is_served(w.tenant_id)
    and (w.holder is null
         or w.lease_until <= statement_timestamp()
         or rules.is_worker_gone(w.worker))
    and (w.paused_until is null or w.paused_until <= statement_timestamp())
    and (rules.find_next_attempt_time(w.tenant_id, w.party_id) <= statement_timestamp()
         or exists (
           select
           from core.test_delivery t
           where t.tenant_id = w.tenant_id and t.party_id = w.party_id))
  order by w.lease_until nulls first
  limit p_limit;
end;
