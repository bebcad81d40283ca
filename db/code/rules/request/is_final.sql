-- Whether an answer is recorded, so that a retry gets the same bytes. Not final, and not recorded,
-- are the answers of a call that is handed back, to invalid input, and to a create_batch that
-- reuses the key of an earlier one. That there is no such coupon is final only if the call says
-- that the HTTP layer has counted it: otherwise its caller may get a 429 instead.
create or replace function rules.is_final(p_call core.call, p_answer core.answer) returns boolean
language sql immutable
return p_answer.http_status in (200, 404, 409, 422)
  and p_answer.code is distinct from 'IDEMPOTENCY_KEY_REUSED'
  and (p_answer.resource is distinct from 'coupon' or p_call.args ? 'is_counted');
