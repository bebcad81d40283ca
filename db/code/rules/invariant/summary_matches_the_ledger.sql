-- This is written from the definition and does not use the function that writes summaries, so it
-- finds mistakes in that function.
create or replace view rules.summary_matches_the_ledger as
select 'summary matches the ledger' as invariant, d.tenant_id,
       core.name_party(d.tenant_id, d.distributor_id) || ' '
         || to_char(d.business_date, 'YYYY-MM-DD') as subject
from (
  select p.tenant_id, p.distributor_id, p.business_date, r.merchant_id, b.template_id, l.currency,
         0 as lines,
         (l.entry_type = 'REDEMPTION')::int as redemptions,
         case l.entry_type when 'REDEMPTION' then l.amount_minor else 0 end as redeemed_minor,
         (l.entry_type = 'REVERSAL')::int as reversals,
         case l.entry_type when 'REVERSAL' then l.amount_minor else 0 end as reversed_minor
  from rules.posting p
  left join core.ledger_entry l on l.tenant_id = p.tenant_id and l.event_seq = p.event_seq
  left join core.reversal v on v.tenant_id = p.tenant_id and v.reversal_id = l.entry_id
  left join core.redemption r
    on r.tenant_id = p.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
  left join core.coupon c on c.tenant_id = p.tenant_id and c.coupon_id = r.coupon_id
  left join core.batch b on b.tenant_id = p.tenant_id and b.batch_id = c.batch_id
  union all
  select s.tenant_id, s.distributor_id, s.business_date, s.merchant_id, s.template_id, s.currency,
         1, -s.redemption_count, -s.redemption_minor, -s.reversal_count, -s.reversal_minor
  from core.statement_line s) d
join core.statement s
  on s.tenant_id = d.tenant_id
     and s.distributor_id = d.distributor_id
     and s.business_date = d.business_date
where s.ready_at is not null
group by d.tenant_id, d.distributor_id, d.business_date, d.merchant_id, d.template_id, d.currency
having sum(d.lines) <> 1
    or (sum(d.redemptions), sum(d.redeemed_minor), sum(d.reversals), sum(d.reversed_minor))
       is distinct from (0::bigint, 0::numeric, 0::bigint, 0::numeric);
comment on view rules.summary_matches_the_ledger is
  'Statements whose summary differs from their ledger entries. A summary has one line for each '
  'merchant, template and currency with entries on its day. Its counts and sums are those of '
  'the ledger entries that are posted to the day; a reversal counts for the merchant of its '
  'redemption.';
