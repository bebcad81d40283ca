-- The answer to a call that succeeds: status 200 and this body.
create or replace function rules.succeed(p_body text, p_ordinal int default null)
returns core.answer
language sql immutable
return (200, null, null, p_body, p_ordinal, false, null, null, null, null, null)::core.answer;
