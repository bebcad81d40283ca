create or replace view rules.sequenced_ledger_entry_is_posted as
select 'sequenced ledger entry is posted' as law, l.tenant_id,
       rules.format_id('led', l.entry_id) as subject
from core.ledger_entry l
join rules.sequenced_event e on e.tenant_id = l.tenant_id and e.event_id = l.entry_id
where not exists (
  select from rules.posting p where p.event_seq = e.event_seq and p.tenant_id = l.tenant_id);
comment on view rules.sequenced_ledger_entry_is_posted is
  'Ledger entries that the sequencer has processed but not posted to a business day.';
