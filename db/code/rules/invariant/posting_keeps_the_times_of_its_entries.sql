create or replace view rules.posting_keeps_the_times_of_its_entries as
select 'posting keeps the times of its entries' as invariant, p.tenant_id,
       core.name_party(p.tenant_id, p.distributor_id) || ' '
         || to_char(p.business_date, 'YYYY-MM-DD') as subject
from core.posting_page p
cross join lateral unnest(p.event_seqs) with ordinality x (event_seq, place)
left join core.ledger_entry l on l.event_seq = x.event_seq
where p.recorded_digest is not null
group by p.tenant_id, p.distributor_id, p.business_date, p.first_number, p.recorded_digest
having rules.compute_times_digest(array_agg(l.recorded_at::timestamptz order by x.place))
       is distinct from p.recorded_digest;
comment on view rules.posting_keeps_the_times_of_its_entries is
  'Pages of postings with an entry that now has another recorded_at, or is missing.';
