-- Fixes what a business day holds: the statement and its summary.
create or replace function rules.close_day(p_tenant_id int, p_distributor_id int, p_business_date date)
returns void
language sql volatile
begin atomic
  insert into core.statement (tenant_id, distributor_id, business_date, entry_count, closed_at)
  select p_tenant_id, p_distributor_id, p_business_date, count(*), clock_timestamp()
  from core.posting p
  where p.tenant_id = p_tenant_id and p.distributor_id = p_distributor_id and p.business_date = p_business_date;
  insert into core.statement_line
    (tenant_id, distributor_id, business_date, number, merchant_id, template_id, currency,
     redemption_count, redemption_minor, reversal_count, reversal_minor)
  select p_tenant_id, p_distributor_id, p_business_date,
         row_number() over (order by l.merchant, l.template, l.currency),
         l.merchant_id, l.template_id, l.currency,
         l.redemption_count, l.redemption_minor, l.reversal_count, l.reversal_minor
  from rules.sum_up_day(p_tenant_id, p_distributor_id, p_business_date) l;
end;
comment on function rules.close_day(int, int, date) is 'Writes the statement of a business day.';
