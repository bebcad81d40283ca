-- Posts each ledger entry to the local day on which it was recorded or, if that day is closed, to
-- the open day: one page for each distributor and day. The books are already open. Looks up time
-- zones and books once for each distributor: time zones are slow. Without offset 0, the planner
-- would compute the dates for each entry.
create or replace function rules.post_entries(p_events rules.event[]) returns void
language plpgsql volatile as $$
begin
  insert into core.posting_page
    (tenant_id, distributor_id, business_date, first_number, event_seqs, recorded_digest)
  select d.tenant_id, d.distributor_id, y.business_date,
         core.count_postings(d.tenant_id, d.distributor_id, y.business_date) + 1, y.event_seqs,
         rules.compute_times_digest(y.times)
  from (
    select e.tenant_id, e.party_id as distributor_id, array_agg(e.event_seq) as event_seqs,
           array_agg(e.recorded_at) as times, min(e.recorded_at) as first_at,
           max(e.recorded_at) as last_at
    from unnest(p_events) e
    where e.event_type in ('coupon.redeemed', 'coupon.reversed')
    group by e.tenant_id, e.party_id) d
  join core.party p on p.tenant_id = d.tenant_id and p.party_id = d.distributor_id
  join core.ledger_book b on b.tenant_id = d.tenant_id and b.party_id = d.distributor_id
  cross join lateral (
    select rules.compute_local_date(d.first_at, p.time_zone) as first_on,
           rules.compute_local_date(d.last_at, p.time_zone) as last_on
    offset 0) o
  cross join lateral (
    select greatest(b.open_on, case
             when o.first_on = o.last_on then o.first_on
             else rules.compute_local_date(x.recorded_at, p.time_zone)
           end) as business_date,
           array_agg(x.event_seq order by x.event_seq) as event_seqs,
           array_agg(x.recorded_at order by x.event_seq) as times
    from unnest(d.event_seqs, d.times) x (event_seq, recorded_at)
    group by 1) y;
end
$$;
