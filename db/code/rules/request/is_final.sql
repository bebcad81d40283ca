-- Whether an answer is recorded, so that a retry gets the same bytes. Three answers are not final
-- and not recorded: of a call that is handed back, to invalid input, and to a create_batch that
-- reuses the key of an earlier one.
create or replace function rules.is_final(p_answer core.answer) returns boolean
language sql immutable
return p_answer.http_status in (200, 404, 409, 422)
  and p_answer.code is distinct from 'IDEMPOTENCY_KEY_REUSED';
