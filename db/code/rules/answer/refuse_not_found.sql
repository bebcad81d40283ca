-- A 404 about a resource that does not exist for the caller. Unknown IDs and other callers' IDs get
-- the same answer.
create or replace function rules.refuse_not_found(p_call core.call, p_resource text)
returns core.answer
language sql immutable
return rules.refuse(p_call, 'NOT_FOUND', format('{"resource":"%s"}', p_resource)::json);
