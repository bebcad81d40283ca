-- This groups by number, because a planner may run an anti join by comparing each entry with all
-- pages.
create or replace view rules.sequenced_ledger_entry_is_posted as
select 'sequenced ledger entry is posted' as invariant, d.tenant_id,
       rules.format_id('led', (array_agg(d.entry_id))[1]) as subject
from (
  select l.tenant_id, l.event_seq, l.entry_id, false as is_posted
  from core.ledger_entry l
  join rules.sequenced_event e on e.event_seq = l.event_seq
  union all
  select p.tenant_id, unnest(p.event_seqs), null::uuid, true
  from core.posting_page p) d
group by d.tenant_id, d.event_seq
having not bool_or(d.is_posted);
comment on view rules.sequenced_ledger_entry_is_posted is
  'Ledger entries that the sequencer has processed but not posted to a business day.';
