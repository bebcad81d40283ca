create or replace function rules.refuse_field(p_call core.call, p_path text, p_message text)
returns core.answer
language sql immutable
return rules.refuse(p_call, 'INVALID_REQUEST',
  json_build_object('issues', json_build_array(json_build_object('path', p_path, 'message', p_message))));
comment on function rules.refuse_field(core.call, text, text) is '400 for one field of the body.';
