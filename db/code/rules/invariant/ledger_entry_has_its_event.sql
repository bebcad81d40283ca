create or replace view rules.ledger_entry_has_its_event as
select 'ledger entry has its event' as law, l.tenant_id,
       rules.format_id('led', l.entry_id) as subject
from core.ledger_entry l
left join core.event e on e.tenant_id = l.tenant_id and e.event_id = l.entry_id
where e.event_type is distinct from
      case l.entry_type when 'REDEMPTION' then 'coupon.redeemed' else 'coupon.reversed' end
   or e.party_id <> l.distributor_id;
comment on view rules.ledger_entry_has_its_event is
  'Ledger entries without an event of the right type for their distributor.';
