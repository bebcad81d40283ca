-- Whether an answer is recorded, so that a retry gets the same bytes. Not final, so not recorded: a
-- call that is handed back, invalid input, and a create_batch that reuses the key of an earlier
-- one.
create or replace function rules.is_final(p_answer core.answer) returns boolean
language sql immutable
return p_answer.http_status in (200, 404, 409, 422)
  and p_answer.code is distinct from 'IDEMPOTENCY_KEY_REUSED';
