-- The fields of an event as a JSON array. The programs format it (src/formats/event-json.ts):
-- formatting would take the database longer than everything else. IDs are UUIDs, times are
-- microseconds since 1970. The redemption is listed only for a reversal: the event of a redemption
-- has the redemption's ID, the event of a reversal has the reversal's.
--
-- The planner copies this function into the query that calls it. So it looks nothing up itself, and
-- passes on columns instead of the row.
create or replace function rules.describe_event(e rules.event) returns text
language sql stable
return case
  when e.coupon_id is null then rules.describe_other_event(
    e.tenant_id, e.event_id, e.event_type, e.party_id, e.batch_id, e.business_date, e.occurred_at)
  else concat(
    '["', e.event_type, '","', e.event_id, '","', e.coupon_id, '",',
    (date_part('epoch', e.occurred_at) * 1000000)::bigint, ',',
    (date_part('epoch', e.recorded_at) * 1000000)::bigint,
    case e.event_type when 'coupon.reversed'
      then ',"' || core.find_reversed_redemption(e.tenant_id, e.event_id) || '"'
    end, ']')
end;
