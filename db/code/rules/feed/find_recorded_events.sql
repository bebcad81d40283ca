-- The sequenced events of a party that were recorded from p_from until just before p_to. Null: to
-- find them, more than p_limit events would have to be read.
--
-- An index of coupon events by time would cost every redemption. So they are looked up in the feed,
-- which they join after they are recorded. In Variant A the feed has other parties' events too, and
-- these are read as well.
create or replace function rules.find_recorded_events(
  p_call core.call, p_party_id int, p_from timestamptz, p_to timestamptz, p_limit int)
returns uuid[]
language plpgsql stable as $$
declare
  v_feed     int := p_call.caller_id;
  v_first    bigint := rules.find_feed_position(p_call.tenant_id, v_feed, p_from);
  v_coupons  record;
  v_others   uuid[];
  v_read     record;
begin
  v_read := rules.read_feed(p_call.tenant_id, v_feed, v_first - 1, p_limit + 1);
  select count(*) as read, max(f.recorded_at) as latest,
         array_remove(array_agg(case
           when f.party_id = p_party_id and f.recorded_at >= p_from and f.recorded_at < p_to
             then f.event_id
         end), null) as events
    into v_coupons
  from (
    select e.event_id, e.party_id, e.recorded_at
    from rules.event e
    where e.event_seq = any (v_read.event_seqs)) f;
  v_others := array(
    select e.event_id
    from rules.sequenced_event e
    where e.tenant_id = p_call.tenant_id
      and e.party_id = p_party_id
      and e.coupon_id is null
      and e.recorded_at >= p_from
      and e.recorded_at < p_to
    limit p_limit + 1);
  if (v_coupons.read > p_limit and v_coupons.latest < p_to)
     or cardinality(v_coupons.events || v_others) > p_limit
  then
    return null;
  end if;
  return v_coupons.events || v_others;
end
$$;
comment on function rules.find_recorded_events(core.call, int, timestamptz, timestamptz, int) is
  'The events of a party that were recorded in a time; null: too many.';
