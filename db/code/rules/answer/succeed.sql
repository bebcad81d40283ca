-- The answer to a call that succeeds: status 200 and this body.
create or replace function rules.succeed(p_body text) returns core.answer
language sql immutable
return (200, null, null, p_body, null, false, null, null, null, null, null)::core.answer;
