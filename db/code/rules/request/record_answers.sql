-- Records final answers, so that a retry gets the same bytes, and returns all answers. A refusal
-- is recorded with what it was about.
create or replace function rules.record_answers(
  p_calls core.call[], p_answers core.answer[])
returns core.answer[]
language plpgsql volatile as $$
begin
  insert into core.request
    (tenant_id, caller_id, request_id, idempotency_key, operation, body_hash, http_status,
     response, recorded_at, coupon_id, merchant_id, store, template_id)
  select (c.call).tenant_id, (c.call).caller_id, (c.call).request_id, (c.call).idempotency_key,
         (c.call).operation, (c.call).body_hash, a.http_status, a.body,
         clock_timestamp(), (c.subject).coupon_id, (c.subject).merchant_id, (c.subject).store,
         (c.subject).template_id
  from unnest(p_answers) a
  cross join lateral (
    select p_calls[a.ordinal] as call, case
             when a.http_status <> 200 then rules.find_subject(p_calls[a.ordinal])
           end as subject
    offset 0) c
  where rules.is_final(c.call, a);
  return p_answers;
end
$$;
