-- Writes the summary of a closed day once, and its sums for reports. A second caller waits and
-- changes nothing. This is not part of closing, because it reads the whole day, and closing blocks
-- the sequencer. Raises an error if a sum leaves out an entry, because it can never be corrected.
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
  with day as materialized (
    select d.* from rules.summarize_day(p_tenant_id, p_distributor_id, p_business_date) d),
  lines as (
    insert into core.statement_line
      (tenant_id, distributor_id, business_date, number, merchant_id, template_id, currency,
       redemption_count, redemption_minor, reversal_count, reversal_minor)
    select p_tenant_id, p_distributor_id, p_business_date,
           row_number() over (order by d.merchant, d.template, d.currency),
           d.merchant_id, d.template_id, d.currency,
           d.redemption_count, d.redemption_minor, d.reversal_count, d.reversal_minor
    from day d
    where d.by_what = 'template'
    returning redemption_count + reversal_count as entries),
  stores as (
    insert into core.store_line
      (tenant_id, distributor_id, business_date, number, merchant_id, store, currency,
       redemption_count, redemption_minor, reversal_count, reversal_minor)
    select p_tenant_id, p_distributor_id, p_business_date,
           row_number() over (order by d.merchant, d.store, d.currency),
           d.merchant_id, d.store, d.currency,
           d.redemption_count, d.redemption_minor, d.reversal_count, d.reversal_minor
    from day d
    where d.by_what = 'store'
    returning redemption_count + reversal_count as entries),
  batches as (
    insert into core.batch_line
      (tenant_id, distributor_id, business_date, batch_id,
       redemption_count, redemption_minor, reversal_count, reversal_minor)
    select p_tenant_id, p_distributor_id, p_business_date, d.batch_id,
           d.redemption_count, d.redemption_minor, d.reversal_count, d.reversal_minor
    from day d
    where d.by_what = 'batch'
    returning redemption_count + reversal_count as entries),
  sums as (
    select coalesce(sum(l.entries), 0) as entries from lines l
    union all
    select coalesce(sum(s.entries), 0) from stores s
    union all
    select coalesce(sum(b.entries), 0) from batches b)
  select s.entries into v_summed from sums s where s.entries <> v_entries limit 1;
  if found then
    raise exception 'the summary of % has % entries, its statement has %',
      p_business_date, v_summed, v_entries;
  end if;
end
$$;
