create or replace function report.find_ledger(p_id text) returns setof report.ledger
language sql stable
begin atomic
  select f.*
  from report.ledger f
  where f.entry_key = any (array(select unnest(report.find_keys(p_id))));
end;
comment on function report.find_ledger(text) is
  'The ledger entries of this ID: cpn_…, red_…, rvs_…, led_… or evt_….';
