-- Written from the definition, like rules.summary_matches_the_ledger.
create or replace view rules.day_sums_match_the_ledger as
select 'day sums match the ledger' as invariant, d.tenant_id,
       core.name_party(d.tenant_id, d.distributor_id) || ' '
         || to_char(d.business_date, 'YYYY-MM-DD') as subject
from (
  select p.tenant_id, p.distributor_id, p.business_date, k.merchant_id, k.store, k.currency,
         k.batch_id, 0 as lines, (l.entry_type = 'REDEMPTION')::int as redemptions,
         case l.entry_type when 'REDEMPTION' then l.amount_minor else 0 end as redeemed_minor,
         (l.entry_type = 'REVERSAL')::int as reversals,
         case l.entry_type when 'REVERSAL' then l.amount_minor else 0 end as reversed_minor
  from rules.posting p
  left join core.ledger_entry l on l.tenant_id = p.tenant_id and l.event_seq = p.event_seq
  left join core.reversal v on v.tenant_id = p.tenant_id and v.reversal_id = l.entry_id
  left join core.redemption r
    on r.tenant_id = p.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
  left join core.coupon c on c.tenant_id = p.tenant_id and c.coupon_id = r.coupon_id
  cross join lateral (
    values (r.merchant_id, r.store::text, l.currency, null::int),
           (null, null, null, c.batch_id)) k (merchant_id, store, currency, batch_id)
  union all
  select s.tenant_id, s.distributor_id, s.business_date, s.merchant_id, s.store, s.currency, null,
         1, -s.redemption_count, -s.redemption_minor, -s.reversal_count, -s.reversal_minor
  from core.store_line s
  union all
  select b.tenant_id, b.distributor_id, b.business_date, null, null, null, b.batch_id,
         1, -b.redemption_count, -b.redemption_minor, -b.reversal_count, -b.reversal_minor
  from core.batch_line b) d
join core.statement s using (tenant_id, distributor_id, business_date)
where s.ready_at is not null
group by d.tenant_id, d.distributor_id, d.business_date, d.merchant_id, d.store, d.currency,
         d.batch_id
having sum(d.lines) <> 1
    or (sum(d.redemptions), sum(d.redeemed_minor), sum(d.reversals), sum(d.reversed_minor))
       is distinct from (0::bigint, 0::numeric, 0::bigint, 0::numeric);
comment on view rules.day_sums_match_the_ledger is
  'Summed up days whose sums by store or by batch, which reports show, differ from their ledger '
  'entries.';
