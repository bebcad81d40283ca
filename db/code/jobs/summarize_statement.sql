-- Writes the summary of a closed day once. A second caller waits and changes nothing. This is not
-- part of closing, because it reads the whole day, and closing blocks the sequencer. Raises an
-- error if the summary leaves out an entry, because a summary can never be corrected.
create or replace function jobs.summarize_statement(
  p_tenant_id int, p_distributor_id int, p_business_date date)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  v_entries  int;
  v_summed   int;
begin
  select s.entry_count into v_entries
  from core.statement s
  where s.tenant_id = p_tenant_id
    and s.distributor_id = p_distributor_id
    and s.business_date = p_business_date
  for no key update;
  if exists (
    select
    from core.statement_line l
    where l.tenant_id = p_tenant_id
      and l.distributor_id = p_distributor_id
      and l.business_date = p_business_date)
  then
    return;
  end if;
  with written as (
    insert into core.statement_line
      (tenant_id, distributor_id, business_date, number, merchant_id, template_id, currency,
       redemption_count, redemption_minor, reversal_count, reversal_minor)
    select p_tenant_id, p_distributor_id, p_business_date,
           row_number() over (order by l.merchant, l.template, l.currency),
           l.merchant_id, l.template_id, l.currency,
           l.redemption_count, l.redemption_minor, l.reversal_count, l.reversal_minor
    from rules.summarize_day(p_tenant_id, p_distributor_id, p_business_date) l
    returning redemption_count, reversal_count)
  select coalesce(sum(w.redemption_count + w.reversal_count), 0) into v_summed from written w;
  if v_summed <> v_entries then
    raise exception 'the summary of % has % entries, its statement has %',
      p_business_date, v_summed, v_entries;
  end if;
end
$$;
