-- The fields of an event, as in rules.describe_event. A coupon event also has its data, as the last
-- element.
create or replace function rules.describe_expanded_event(e rules.event) returns text
language sql stable
return case
  when e.coupon_id is null then rules.describe_event(e)
  else concat(
    left(rules.describe_event(e), -1), ',',
    rules.describe_data(e.tenant_id, e.event_id, e.event_type, e.coupon_id), ']')
end;
