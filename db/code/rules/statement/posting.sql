-- The business day of each ledger entry, and its number there. first_number is that of its page.
create or replace view rules.posting as
select p.tenant_id, p.distributor_id, p.business_date,
       (p.first_number + x.ordinality - 1)::int as number, l.entry_id,
       x.event_seq, p.first_number
from core.posting_page p
cross join lateral unnest(p.event_seqs) with ordinality x (event_seq, ordinality)
left join core.ledger_entry l on l.event_seq = x.event_seq;
