-- Opens the books of distributors that have none. The first business day is the local day of the
-- first allocation (or of the first redemption, if a batch was released by hand). In Variant A, all
-- distributors share one list by date, so a new book begins after the dates that are already
-- closed.
create or replace function rules.open_books(p_seqs bigint[]) returns void
language sql volatile
begin atomic
  insert into core.ledger_book (tenant_id, party_id, open_on)
  select e.tenant_id, e.party_id,
         greatest(
           min(rules.compute_local_date(e.recorded_at, p.time_zone)),
           (select max(s.business_date) + 1
            from core.statement s
            join core.tenant t on t.tenant_id = s.tenant_id and t.variant = 'A'
            where s.tenant_id = e.tenant_id))
  from core.event e
  join core.party p on p.tenant_id = e.tenant_id and p.party_id = e.party_id
  where e.event_seq = any (p_seqs)
    and e.event_type in ('allocation.completed', 'coupon.redeemed', 'coupon.reversed')
  group by e.tenant_id, e.party_id
  on conflict do nothing;
end;
comment on function rules.open_books(bigint[]) is
  'Opens the books of distributors that have none yet.';
