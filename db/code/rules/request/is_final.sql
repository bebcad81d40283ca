-- Whether an answer is recorded, so that a retry gets the same bytes. A call that is handed back,
-- invalid input, and a create_batch that reuses the key of an earlier one get answers that are not.
-- A 404 about a coupon is recorded only if the call says that the HTTP layer has counted it:
-- otherwise the caller may get a 429 instead.
create or replace function rules.is_final(p_call core.call, p_answer core.answer) returns boolean
language sql immutable
return p_answer.http_status in (200, 404, 409, 422)
  and p_answer.code is distinct from 'IDEMPOTENCY_KEY_REUSED'
  and (p_answer.resource is distinct from 'coupon' or p_call.args ? 'is_counted');
