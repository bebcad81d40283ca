create or replace view rules.redemption_event_has_its_ledger_entry as
select 'redemption event has its ledger entry' as law, e.tenant_id,
       rules.format_id('evt', e.event_id) as subject
from core.event e
where e.event_type in ('coupon.redeemed', 'coupon.reversed')
  and not exists (
    select from core.ledger_entry l where l.tenant_id = e.tenant_id and l.entry_id = e.event_id);
comment on view rules.redemption_event_has_its_ledger_entry is
  'Events of redemptions and reversals that have no ledger entry.';
