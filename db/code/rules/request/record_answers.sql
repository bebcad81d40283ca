-- Records final answers, so that a retry gets the same bytes, and returns all outcomes. A refusal
-- is recorded with what it was about.
create or replace function rules.record_answers(
  p_calls core.call[], p_outcomes core.outcome[])
returns core.outcome[]
language plpgsql volatile as $$
begin
  insert into core.request
    (tenant_id, caller_id, request_id, idempotency_key, operation, body_hash, http_status,
     response, recorded_at, coupon_id, merchant_id, store, template_id)
  select (c.call).tenant_id, (c.call).caller_id, (c.call).request_id, (c.call).idempotency_key,
         (c.call).operation, (c.call).body_hash, (o.answer).http_status, (o.answer).body,
         clock_timestamp(), (c.subject).coupon_id, (c.subject).merchant_id, (c.subject).store,
         (c.subject).template_id
  from unnest(p_outcomes) o
  cross join lateral (
    select p_calls[o.ordinal] as call, case
             when (o.answer).http_status <> 200 then rules.find_subject(p_calls[o.ordinal])
           end as subject
    offset 0) c
  where rules.is_final(c.call, o.answer);
  return p_outcomes;
end
$$;
