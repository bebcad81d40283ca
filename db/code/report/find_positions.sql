-- An index of positions would cost every redemption. An event joins its feed after it is recorded,
-- so a binary search finds where to begin, and this reads the next pages until it finds the event:
-- at most 1,000, each of one step of the sequencer. It is security definer, because readers of
-- reports call it and may read no table.
create or replace function report.find_positions(
  p_id text, out tenant_id int, out event_key uuid, out feed_position bigint)
returns setof record
language plpgsql stable security definer rows 3
set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
  return query
  select e.tenant_id, e.event_id, f.feed_position
  from rules.sequenced_event e
  cross join lateral (
    select rules.find_feed_position(e.tenant_id, e.feed_party_id, e.recorded_at)) s (begins_at)
  cross join lateral (
    select n.first_position + array_position(n.event_seqs, e.event_seq) - 1 as feed_position
    from (
      select g.first_position, g.event_seqs
      from core.feed_page g
      where g.tenant_id = e.tenant_id
        and g.party_id = e.feed_party_id
        and g.first_position >= s.begins_at
      order by g.first_position
      limit 1000) n
    where e.event_seq = any (n.event_seqs)
    limit 1) f
  where e.event_id = any (report.find_keys(p_id)) and e.coupon_id is not null;
end
$$;
comment on function report.find_positions(text) is
  'The positions in their feeds of the coupon events of this ID: cpn_…, red_…, rvs_…, led_… or '
  'evt_…. No row: not sequenced yet, or pruned from the feed.';
