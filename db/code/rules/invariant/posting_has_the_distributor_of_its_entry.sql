create or replace view rules.posting_has_the_distributor_of_its_entry as
select 'posting has the distributor of its entry' as invariant, p.tenant_id,
       rules.format_id('led', p.entry_id) as subject
from rules.posting p
left join core.ledger_entry l on l.tenant_id = p.tenant_id and l.event_seq = p.event_seq
where l.distributor_id is distinct from p.distributor_id;
comment on view rules.posting_has_the_distributor_of_its_entry is
  'Postings under a distributor other than their ledger entry''s.';
