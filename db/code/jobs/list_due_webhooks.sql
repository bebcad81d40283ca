-- Subscribers with due deliveries that no worker is serving, or whose worker is gone. The one that
-- has waited longest comes first.
--
-- Many deliveries may wait for a later attempt, so this reads only the earliest of a subscriber.
-- The order makes the planner use the index of due deliveries, even if it knows nothing about the
-- table.
create or replace function jobs.list_due_webhooks(p_limit int, out tenant_id int, out party_id int)
returns setof record
language sql volatile security definer set search_path = pg_catalog, pg_temp
begin atomic
  select w.tenant_id, w.party_id
  from core.webhook w
  where w.disabled_at is null
    and (w.holder is null
         or w.lease_until <= statement_timestamp()
         or rules.is_worker_gone(w.worker))
    and (w.paused_until is null or w.paused_until <= statement_timestamp())
    and ((
           select d.next_attempt_at
           from core.delivery d
           where d.tenant_id = w.tenant_id
             and d.party_id = w.party_id
             and d.parked_at is null
           order by d.next_attempt_at
           limit 1) <= statement_timestamp()
         or exists (
           select
           from core.test_delivery t
           where t.tenant_id = w.tenant_id and t.party_id = w.party_id))
  order by w.lease_until nulls first
  limit p_limit;
end;
