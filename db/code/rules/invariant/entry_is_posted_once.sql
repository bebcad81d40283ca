create or replace view rules.entry_is_posted_once as
select 'entry is posted once' as invariant, p.tenant_id,
  rules.format_id('led', p.entry_id) as subject
from rules.posting p
group by p.tenant_id, p.event_seq, p.entry_id
having count(*) > 1;
comment on view rules.entry_is_posted_once is
  'Ledger entries with two postings.';
