-- A problem of a provisioning document, as a list of one.
create or replace function rules.describe_problem(p_path text, p_message text) returns jsonb
language sql immutable
return jsonb_build_array(jsonb_build_object('path', p_path, 'message', p_message));
