-- Appends coupon events to their feeds: one page for each feed, in the order of their numbers. The
-- trigger of core.feed_page moves the feeds.
create or replace function rules.append_to_feeds(p_events rules.event[]) returns void
language plpgsql volatile as $$
begin
  with page as materialized (
    select m.tenant_id, case t.variant when 'A' then 0 else m.party_id end as party_id,
           array_agg(x.event_seq order by x.event_seq) as event_seqs
    from (
      select e.tenant_id, e.party_id, array_agg(e.event_seq) as event_seqs
      from unnest(p_events) e
      where e.coupon_id is not null
      group by e.tenant_id, e.party_id) m
    join core.tenant t on t.tenant_id = m.tenant_id
    cross join lateral unnest(m.event_seqs) x (event_seq)
    group by 1, 2),
  opened as (
    insert into core.feed (tenant_id, party_id, last_position, skipped_count)
    select p.tenant_id, p.party_id, rules.find_feed_base(p.tenant_id),
           rules.find_feed_base(p.tenant_id)
    from page p
    where not exists (
      select from core.feed f where f.tenant_id = p.tenant_id and f.party_id = p.party_id)
    returning tenant_id, party_id, last_position)
  insert into core.feed_page (tenant_id, party_id, first_position, sequenced_at, event_seqs)
  select p.tenant_id, p.party_id, coalesce(f.last_position, o.last_position) + 1,
         clock_timestamp(), p.event_seqs
  from page p
  left join core.feed f on f.tenant_id = p.tenant_id and f.party_id = p.party_id
  left join opened o on o.tenant_id = p.tenant_id and o.party_id = p.party_id;
end
$$;
