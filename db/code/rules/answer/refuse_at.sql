-- A refusal whose details are one moment. p_name is our own text.
create or replace function rules.refuse_at(
  p_call core.call, p_code text, p_name text, p_at timestamptz)
returns core.answer
language sql stable
return rules.refuse(
  p_call, p_code, format('{"%s":"%s"}', p_name, rules.format_time(p_at))::json);
