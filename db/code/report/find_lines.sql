-- Returns the business days of the ledger entries under an ID, and their lines in detail.csv. An
-- index of entries would cost every redemption. So this reads the postings of the distributor until
-- it finds the entry, from the day before the entry (because of the time zone) on. It is security
-- definer, because readers of reports call it and may read no table.
create or replace function report.find_lines(
  p_id text, out tenant_id int, out distributor text, out business_date date, out number int)
returns setof record
language plpgsql stable security definer rows 3 set search_path = pg_catalog, pg_temp as $$
begin
  return query
  select l.tenant_id, d.external_id, w.business_date, w.number
  from core.ledger_entry l
  join core.party d on d.tenant_id = l.tenant_id and d.party_id = l.distributor_id
  cross join lateral (
    select p.business_date, p.first_number + array_position(p.event_seqs, l.event_seq) - 1 as number
    from core.posting_page p
    where p.tenant_id = l.tenant_id
      and p.distributor_id = l.distributor_id
      and p.business_date >= (l.recorded_at at time zone 'UTC')::date - 1
      and l.event_seq = any (p.event_seqs)
    order by p.business_date
    limit 1) w
  where l.entry_id = any (report.find_keys(p_id));
end
$$;
comment on function report.find_lines(text) is
  'The business days of the ledger entries of this ID, and their lines in detail.csv.';
