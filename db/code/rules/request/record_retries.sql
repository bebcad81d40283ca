-- Records the replays that were found by their idempotency-key alone. From then on, their
-- request_ids name the request too: in a retry, in get_request, and as the lock_request_id of a
-- confirm or cancel. Their names are already locked. The copy has the time of the first record, so
-- both are pruned at the same time.
create or replace function rules.record_retries(p_calls core.call[], p_answers core.answer[])
returns void
language plpgsql volatile as $$
begin
  insert into core.request
    (tenant_id, caller_id, request_id, first_request_id, operation, body_hash, http_status,
     response, recorded_at, redemption_id, lock_expires_at, coupon_id, merchant_id, store,
     template_id)
  select k.tenant_id, k.caller_id, (c.call).request_id, k.request_id, k.operation, k.body_hash,
         k.http_status, k.response, k.recorded_at, k.redemption_id, k.lock_expires_at, k.coupon_id,
         k.merchant_id, k.store,
         k.template_id
  from unnest(p_answers) a
  cross join lateral (select p_calls[a.ordinal] as call offset 0) c
  join core.request k
    on k.tenant_id = (c.call).tenant_id
       and k.caller_id = (c.call).caller_id
       and k.idempotency_key = (c.call).idempotency_key
  where a.is_replay
    and not exists (
      select from core.request q
      where q.tenant_id = (c.call).tenant_id
        and q.caller_id = (c.call).caller_id
        and q.request_id = (c.call).request_id);
end
$$;
