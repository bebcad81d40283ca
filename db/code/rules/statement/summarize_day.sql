-- Sums up a business day from its postings and the ledger, in one pass: by merchant and template
-- (by_what is 'template', the lines of summary.csv), by merchant and store ('store'), and by batch
-- ('batch'). Reads rows of that day only (see rules.posted_entry), and each name once per line.
create or replace function rules.summarize_day(
  p_tenant_id int, p_distributor_id int, p_business_date date,
  out by_what text, out merchant_id int, out template_id int, out store text, out batch_id int,
  out currency text, out merchant text, out template text,
  out redemption_count int, out redemption_minor bigint,
  out reversal_count int, out reversal_minor bigint)
returns setof record
language sql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off
begin atomic
  select s.by_what, s.merchant_id, s.template_id, s.store, s.batch_id, s.currency, m.external_id,
         t.external_id, s.redemption_count, s.redemption_minor, s.reversal_count, s.reversal_minor
  from (
    select case when grouping(e.batch_id) = 0 then 'batch'
                when grouping(e.template_id) = 0 then 'template'
                else 'store' end as by_what,
           e.merchant_id, e.template_id, e.store, e.batch_id, e.currency,
           (count(*) filter (where e.entry_type = 'REDEMPTION'))::int as redemption_count,
           (coalesce(sum(e.amount_minor) filter (where e.entry_type = 'REDEMPTION'), 0))::bigint
             as redemption_minor,
           (count(*) filter (where e.entry_type = 'REVERSAL'))::int as reversal_count,
           (coalesce(sum(e.amount_minor) filter (where e.entry_type = 'REVERSAL'), 0))::bigint
             as reversal_minor
    from rules.posted_entry e
    where e.tenant_id = p_tenant_id
      and e.distributor_id = p_distributor_id
      and e.business_date = p_business_date
    group by grouping sets (
      (e.merchant_id, e.template_id, e.currency), (e.merchant_id, e.store, e.currency),
      (e.batch_id))) s
  left join core.merchant m on m.tenant_id = p_tenant_id and m.merchant_id = s.merchant_id
  left join core.template t on t.tenant_id = p_tenant_id and t.template_id = s.template_id;
end;
