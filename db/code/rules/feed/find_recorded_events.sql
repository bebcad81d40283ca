-- Returns the sequenced events of a party, of the types in p_types (null: all), that were recorded
-- from p_from until just before p_to.
-- Returns null if there are more than p_limit, or if ten times p_limit events of the feed do not
-- reach p_to.
--
-- An index of coupon events by time would cost every redemption. So this searches the feed, which
-- events join after they are recorded. In Variant A the feed also has other parties' events, and
-- the search reads them too.
--
-- Events join in the order of their numbers, except late ones. So the search goes on until it
-- reaches events recorded 5 s after p_to or later: a call of the service takes at most 3 s, so its
-- events from before p_to joined earlier. Expiry and psql can take longer, and their events can be
-- missed.
create or replace function rules.find_recorded_events(
  p_call core.call, p_party_id int, p_from timestamptz, p_to timestamptz, p_limit int,
  p_types text[] default null)
returns uuid[]
language plpgsql stable as $$
declare
  v_feed    int := p_call.caller_id;
  v_after   bigint := rules.find_feed_position(p_call.tenant_id, v_feed, p_from) - 1;
  v_events  uuid[];
  v_read    record;
  v_found   record;
begin
  v_events := array(
    select e.event_id
    from rules.sequenced_event e
    where e.tenant_id = p_call.tenant_id
      and e.party_id = p_party_id
      and e.coupon_id is null
      and rules.is_type_taken(p_types, e.event_type)
      and e.recorded_at >= p_from
      and e.recorded_at < p_to
    limit p_limit + 1);
  for i in 1..10 loop
    v_read := rules.read_feed(p_call.tenant_id, v_feed, v_after, p_limit);
    select min(f.recorded_at) as earliest,
           array_remove(array_agg(case
             when f.party_id = p_party_id and f.recorded_at >= p_from and f.recorded_at < p_to
               and rules.is_type_taken(p_types, f.event_type) then f.event_id
           end), null) as events
      into v_found
    from (
      select e.event_id, e.event_type, e.party_id, e.recorded_at
      from rules.event e
      where e.event_seq = any (v_read.event_seqs)) f;
    v_events := v_events || v_found.events;
    v_after := v_read.last_position;
    if cardinality(v_events) > p_limit then
      return null;
    elsif cardinality(v_read.event_seqs) < p_limit
       or v_found.earliest >= p_to + interval '5 seconds'
    then
      return v_events;
    end if;
  end loop;
  return null;
end
$$;
