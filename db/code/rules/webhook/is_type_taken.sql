-- Whether a webhook takes events of a type. p_event_types: core.webhook.event_types.
create or replace function rules.is_type_taken(p_event_types text[], p_event_type text)
returns boolean
language sql immutable parallel safe
return p_event_type = any (p_event_types) is not false;
