-- The position of each redemption and reversal in the list of its merchant.
create or replace view rules.merchant_change as
select p.tenant_id, p.merchant_id, p.first_position + x.ordinality - 1 as position, x.event_seq,
       l.entry_id, l.recorded_at, p.first_position
from core.merchant_page p
cross join lateral unnest(p.event_seqs) with ordinality x (event_seq, ordinality)
left join core.ledger_entry l on l.event_seq = x.event_seq;
