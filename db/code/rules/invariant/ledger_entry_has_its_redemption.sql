create or replace view rules.ledger_entry_has_its_redemption as
select 'ledger entry has its redemption' as invariant, l.tenant_id,
       rules.format_id('led', l.entry_id) as subject
from core.ledger_entry l
left join core.reversal v on v.tenant_id = l.tenant_id and v.reversal_id = l.entry_id
left join core.redemption r
  on r.tenant_id = l.tenant_id and r.redemption_id = coalesce(v.redemption_id, l.entry_id)
where r.redemption_id is null
   or (l.entry_type = 'REVERSAL') <> (v.reversal_id is not null)
   or l.coupon_id <> r.coupon_id
   or l.occurred_at is distinct from coalesce(v.reversed_at, r.redeemed_at);
comment on view rules.ledger_entry_has_its_redemption is
  'Ledger entries without a redemption, or with the wrong type, coupon or time.';
