-- A 400 about one field of the body. Does not escape p_path and p_message: pass only our own texts.
create or replace function rules.refuse_field(p_call core.call, p_path text, p_message text)
returns core.answer
language sql immutable
return rules.refuse(p_call, 'INVALID_REQUEST',
  format('{"issues":[{"path":"%s","message":"%s"}]}', p_path, p_message)::json);
