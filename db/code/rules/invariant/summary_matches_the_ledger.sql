-- Each line must occur once in the computed summary and once in the stored one.
create or replace view rules.summary_matches_the_ledger as
select 'summary matches the ledger' as law, s.tenant_id,
       s.distributor_id || ' ' || s.business_date as subject
from core.statement s
where s.ready_at is not null
  and exists (
    select
    from (
      select x.merchant_id, x.template_id, x.currency,
             x.redemption_count, x.redemption_minor, x.reversal_count, x.reversal_minor, 1 as side
      from rules.summarize_day(s.tenant_id, s.distributor_id, s.business_date) x
      union all
      select l.merchant_id, l.template_id, l.currency,
             l.redemption_count, l.redemption_minor, l.reversal_count, l.reversal_minor, 2
      from core.statement_line l
      where l.tenant_id = s.tenant_id
        and l.distributor_id = s.distributor_id
        and l.business_date = s.business_date) d
    group by d.merchant_id, d.template_id, d.currency,
             d.redemption_count, d.redemption_minor, d.reversal_count, d.reversal_minor
    having count(*) <> 2 or min(d.side) = max(d.side));
comment on view rules.summary_matches_the_ledger is
  'Statements whose summary differs from their ledger entries.';
