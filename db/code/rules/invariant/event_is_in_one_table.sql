create or replace view rules.event_is_in_one_table as
select 'event is in one table' as invariant, e.tenant_id,
  rules.format_id('evt', e.event_id) as subject
from core.event e
where exists (select from core.ledger_entry l where l.event_seq = e.event_seq)
   or exists (
     select from core.ledger_entry l where l.tenant_id = e.tenant_id and l.entry_id = e.event_id);
comment on view rules.event_is_in_one_table is
  'Events that have the number or the ID of a ledger entry. Triggers refuse this, except for a '
  'number that two sessions choose by hand at the same time, and for an ID that an event got by '
  'hand before the redemption or reversal did.';
