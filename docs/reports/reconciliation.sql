-- Do the closed statements agree with the ledger? Days since the day before yesterday.
-- Sums up the ledger entry by entry, so a thousand entries take a tenth of a second. A difference
-- other than 0 is a broken invariant: look at report.invariants.
with day as materialized (
  select tenant, distributor, business_date
  from report.statement
  where business_date >= current_date - 2
    and ready_at is not null
    and tenant in (select tenant from report.tenant where not is_sandbox)),
line as (
  select d.*, x.*
  from day d
  cross join lateral (
    select l.currency, sum(l.redemption_count + l.reversal_count) as entries,
           sum(l.net_amount) as net
    from report.statement_line l
    where (l.tenant, l.distributor, l.business_date)
          = (d.tenant, d.distributor, d.business_date)
    group by l.currency) x),
entry as (
  select d.*, x.*
  from day d
  cross join lateral (
    select p.currency, count(*) as entries, sum(p.discount_amount) as net
    from report.posting p
    where (p.tenant, p.distributor, p.business_date)
          = (d.tenant, d.distributor, d.business_date)
    group by p.currency) x)
select tenant, distributor, business_date, currency,
       l.entries as statement_entries, e.entries as ledger_entries,
       l.net as statement_net, e.net as ledger_net,
       coalesce(l.net, 0) - coalesce(e.net, 0) as difference
from line l
full join entry e using (tenant, distributor, business_date, currency)
order by coalesce(l.net, 0) = coalesce(e.net, 0), tenant, distributor, business_date, currency;
