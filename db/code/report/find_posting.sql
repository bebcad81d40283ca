create or replace function report.find_posting(p_id text) returns setof report.posting
language sql stable
begin atomic
  select f.*
  from report.find_lines(p_id) w
  join report.posting f
    on f.tenant_id = w.tenant_id
       and f.distributor = w.distributor
       and f.business_date = w.business_date
       and f.number = w.number;
end;
comment on function report.find_posting(text) is
  'The postings of this ID: cpn_…, red_…, rvs_…, led_… or evt_….';
