create or replace view rules.redemption_has_its_ledger_entries as
select 'redemption has its ledger entries' as invariant, r.tenant_id,
       rules.format_id('red', r.redemption_id) as subject
from core.redemption r
left join (
  select l.tenant_id, coalesce(v.redemption_id, l.entry_id) as redemption_id,
         count(*) as entries, sum(l.amount_minor) as total,
         min(l.currency) as currency, max(l.currency) as other_currency
  from core.ledger_entry l
  left join core.reversal v on v.tenant_id = l.tenant_id and v.reversal_id = l.entry_id
  group by l.tenant_id, coalesce(v.redemption_id, l.entry_id)) l
  on l.tenant_id = r.tenant_id and l.redemption_id = r.redemption_id
where (coalesce(l.entries, 0), coalesce(l.total, 0)) is distinct from case r.status
    when 'REDEEMED' then (1::bigint, r.discount_minor::numeric)
    when 'REVERSED' then (2::bigint, 0::numeric)
    else (0::bigint, 0::numeric)
  end
   or l.currency <> r.currency
   or l.other_currency <> r.currency;
comment on view rules.redemption_has_its_ledger_entries is
  'Redemptions whose ledger entries are missing, superfluous or wrong. REDEEMED: one entry, of '
  'the discount. REVERSED: two entries that sum to zero. Otherwise: none.';
