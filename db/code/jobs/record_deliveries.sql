-- Records attempts to deliver events to one subscriber. p_attempts:
--   [{event_id, test_event_type, attempt, http_status, error, reason, duration_ms, is_taken,
--     retry_after_seconds, is_gone}]
-- Returns one row per attempt: taken, gone, parked (the last attempt failed), or failed (another
-- one follows).
--
-- taken: the delivery is deleted. failed: it is due again after the delay of the schedule, or at
-- the time that the subscriber asked for, whichever is later. gone (HTTP 410): the webhook is
-- disabled and its deliveries are parked. A failure is only logged if p_holder has lost the lease,
-- for example because the webhook got another URL, or if the delivery has meanwhile been parked or
-- recorded by another worker. Neither outcome counts for a delivery that was replayed after the
-- attempt was leased. A test event is tried once: it is deleted, whatever the outcome.
create or replace function jobs.record_deliveries(
  p_tenant_id int, p_party_id int, p_holder uuid, p_attempts jsonb,
  out event_id uuid, out outcome text)
returns setof record
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_now        timestamptz := clock_timestamp();
  v_is_holder  boolean;
begin
  -- lock order: the webhook before its deliveries
  select w.holder = p_holder into v_is_holder
  from core.webhook w
  where w.tenant_id = p_tenant_id and w.party_id = p_party_id
  for no key update;
  insert into core.delivery_attempt
    (tenant_id, party_id, event_id, attempt, http_status, error, reason, duration_ms,
     attempted_at, test_event_type)
  select p_tenant_id, p_party_id, r.event_id, r.attempt, r.http_status, r.error, r.reason,
         r.duration_ms, v_now, r.test_event_type
  from jsonb_to_recordset(p_attempts)
    r (event_id uuid, test_event_type text, attempt int, http_status int, error text,
       reason text, duration_ms int);
  delete from core.test_delivery d
  using jsonb_to_recordset(p_attempts) r (event_id uuid)
  where d.tenant_id = p_tenant_id and d.party_id = p_party_id and d.event_id = r.event_id;
  delete from core.delivery d
  using jsonb_to_recordset(p_attempts) r (event_id uuid, is_taken boolean)
  where d.tenant_id = p_tenant_id and d.party_id = p_party_id and d.event_id = r.event_id
    and r.is_taken
    and rules.is_attempt_counted(d.counts_for, p_holder);
  update core.delivery d
  set attempt_count = r.attempt,
      last_error = coalesce(r.error, 'HTTP ' || r.http_status),
      parked_at = case when rules.compute_retry_delay(r.attempt) is null then v_now end,
      next_attempt_at = greatest(
        v_now + coalesce(rules.compute_retry_delay(r.attempt), interval '0'),
        v_now + make_interval(secs => r.retry_after_seconds))
  from jsonb_to_recordset(p_attempts)
    r (event_id uuid, attempt int, http_status int, error text, is_taken boolean,
       retry_after_seconds int)
  where d.tenant_id = p_tenant_id and d.party_id = p_party_id and d.event_id = r.event_id
    and not r.is_taken
    and v_is_holder
    and d.attempt_count = r.attempt - 1
    and rules.is_attempt_counted(d.counts_for, p_holder)
    and d.parked_at is null;
  update core.webhook w
  set paused_until = v_now + make_interval(secs => r.seconds)
  from (
    select max(x.retry_after_seconds) as seconds
    from jsonb_to_recordset(p_attempts) x (retry_after_seconds int)) r
  where w.tenant_id = p_tenant_id and w.party_id = p_party_id and v_is_holder and r.seconds > 0;
  if v_is_holder
     and exists (select from jsonb_to_recordset(p_attempts) r (is_gone boolean) where r.is_gone)
  then
    perform rules.disable_webhook(p_tenant_id, p_party_id, 'HTTP 410');
  end if;
  return query
  select r.event_id,
         case when r.is_taken then 'taken'
              when r.is_gone then 'gone'
              when rules.compute_retry_delay(r.attempt) is null then 'parked'
              else 'failed' end
  from jsonb_to_recordset(p_attempts)
    r (event_id uuid, attempt int, is_taken boolean, is_gone boolean);
end
$$;
