-- The refusal of an event of a type that the webhook does not take.
create or replace function rules.refuse_event_type(
  p_call core.call, p_field text, p_event_types text[])
returns core.answer
language sql stable
return rules.refuse_field(p_call, p_field,
  'must be of a type that the webhook takes: ' || array_to_string(p_event_types, ', '));
