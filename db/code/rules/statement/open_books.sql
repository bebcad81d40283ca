-- Opens the books of distributors that have none. The first business day is the local day of the
-- first allocation (or of the first redemption, if a batch was released by hand). In Variant A, all
-- distributors share one list by date, so a new book begins after the dates that are already
-- closed.
create or replace function rules.open_books(p_events rules.event[]) returns void
language plpgsql volatile as $$
begin
  insert into core.ledger_book (tenant_id, party_id, open_on)
  select e.tenant_id, e.party_id,
         greatest(
           rules.compute_local_date(least(e.first_at, clock_timestamp()), p.time_zone),
           (select max(s.business_date) + 1
            from core.statement s
            join core.tenant t on t.tenant_id = s.tenant_id and t.variant = 'A'
            where s.tenant_id = e.tenant_id))
  from (
    select x.tenant_id, x.party_id, min(x.recorded_at) as first_at
    from unnest(p_events) x
    where x.event_type in ('allocation.completed', 'coupon.redeemed', 'coupon.reversed')
    group by x.tenant_id, x.party_id) e
  join core.party p on p.tenant_id = e.tenant_id and p.party_id = e.party_id
  where not exists (
    select from core.ledger_book b where b.tenant_id = e.tenant_id and b.party_id = e.party_id);
end
$$;
