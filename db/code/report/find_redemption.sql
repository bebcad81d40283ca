create or replace function report.find_redemption(p_id text) returns setof report.redemption
language sql stable
begin atomic
  select f.*
  from report.redemption f
  where f.redemption_key = any (array(select unnest(report.find_keys(p_id))));
end;
comment on function report.find_redemption(text) is
  'The locks and redemptions of this ID: cpn_…, red_…, rvs_…, led_… or evt_….';
