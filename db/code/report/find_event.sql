create or replace function report.find_event(p_id text) returns setof report.event
language sql stable
begin atomic
  select f.*
  from report.event f
  where f.event_key = any (array(select unnest(report.find_keys(p_id))));
end;
comment on function report.find_event(text) is
  'The events of this ID: cpn_…, red_…, rvs_…, led_… or evt_….';
