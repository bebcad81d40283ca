-- Posts each ledger entry to the local day on which it was recorded or, if that day is closed, to
-- the open day. The books are already open.
create or replace function rules.post_entries(p_seqs bigint[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  with dated as (
    select l.tenant_id, l.distributor_id, l.entry_id, e.event_seq,
           greatest(rules.compute_local_date(l.recorded_at, p.time_zone), b.open_on)
             as business_date
    from core.event e
    join core.ledger_entry l on l.tenant_id = e.tenant_id and l.entry_id = e.event_id
    join core.party p on p.tenant_id = l.tenant_id and p.party_id = l.distributor_id
    join core.ledger_book b on b.tenant_id = l.tenant_id and b.party_id = l.distributor_id
    where e.event_seq = any (p_seqs)),
  day as (
    select d.tenant_id, d.distributor_id, d.business_date,
           coalesce((
             select x.number
             from core.posting x
             where x.tenant_id = d.tenant_id
               and x.distributor_id = d.distributor_id
               and x.business_date = d.business_date
             order by x.number desc
             limit 1), 0) as last_number
    from dated d
    group by d.tenant_id, d.distributor_id, d.business_date)
  insert into core.posting (tenant_id, distributor_id, business_date, number, entry_id)
  select d.tenant_id, d.distributor_id, d.business_date,
         y.last_number
         + row_number() over (
           partition by d.tenant_id, d.distributor_id, d.business_date order by d.event_seq),
         d.entry_id
  from dated d
  join day y using (tenant_id, distributor_id, business_date);
end
$$;
comment on function rules.post_entries(bigint[]) is 'Posts ledger entries to business days.';
