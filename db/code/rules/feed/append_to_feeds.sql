-- Appends coupon events to their feeds, in the order of their numbers.
create or replace function rules.append_to_feeds(p_seqs bigint[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  insert into core.feed (tenant_id, party_id, last_position, skipped_count)
  select distinct e.tenant_id, case t.variant when 'A' then 0 else e.party_id end,
         s.feed_base, s.feed_base
  from core.event e
  join core.tenant t on t.tenant_id = e.tenant_id
  cross join core.sequencer s
  where e.event_seq = any (p_seqs) and e.coupon_id is not null
  on conflict do nothing;

  with placed as (
    insert into core.feed_event (tenant_id, party_id, position, event_id, body, sequenced_at)
    select f.tenant_id, f.party_id,
           f.last_position
           + row_number() over (partition by f.tenant_id, f.party_id order by e.event_seq),
           e.event_id, rules.render_event(e), clock_timestamp()
    from core.event e
    join core.tenant t on t.tenant_id = e.tenant_id
    join core.feed f
      on f.tenant_id = e.tenant_id
         and f.party_id = case t.variant when 'A' then 0 else e.party_id end
    where e.event_seq = any (p_seqs) and e.coupon_id is not null
    returning tenant_id, party_id, position)
  update core.feed f
  set last_position = p.last_position
  from (
    select tenant_id, party_id, max(position) as last_position
    from placed
    group by tenant_id, party_id) p
  where f.tenant_id = p.tenant_id and f.party_id = p.party_id;
end
$$;
comment on function rules.append_to_feeds(bigint[]) is
  'Assigns coupon events their positions in the feeds.';
