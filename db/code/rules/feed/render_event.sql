-- An event as JSON, for feed pages and webhooks. The event of a redemption has the redemption's ID;
-- the event of a reversal has the reversal's.
create or replace function rules.render_event(p_event core.event) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  if p_event.coupon_id is not null then
    return format(
      '{"event_id":"%s","event_type":"%s","coupon_id":"%s","redemption_id":%s,'
      '"occurred_at":"%s","recorded_at":"%s"}',
      rules.format_id('evt', p_event.event_id), p_event.event_type,
      rules.format_id('cpn', p_event.coupon_id),
      coalesce('"' || rules.format_id('red', case p_event.event_type
        when 'coupon.redeemed' then p_event.event_id
        when 'coupon.reversed'
          then core.find_reversed_redemption(p_event.tenant_id, p_event.event_id)
      end) || '"', 'null'),
      rules.format_time(p_event.occurred_at), rules.format_time(p_event.recorded_at));
  end if;
  if p_event.batch_id is not null then
    return format(
      '{"event_id":"%s","event_type":"%s","batch_id":"%s","occurred_at":"%s"}',
      rules.format_id('evt', p_event.event_id), p_event.event_type,
      (select b.external_id
       from core.batch b
       where b.tenant_id = p_event.tenant_id and b.batch_id = p_event.batch_id),
      rules.format_time(p_event.occurred_at));
  end if;
  return format(
    '{"event_id":"%s","event_type":"%s","business_date":"%s","distributor_party_id":"%s",'
    '"occurred_at":"%s"}',
    rules.format_id('evt', p_event.event_id), p_event.event_type,
    to_char(p_event.business_date, 'YYYY-MM-DD'),
    (select d.external_id
     from core.party d
     where d.tenant_id = p_event.tenant_id and d.party_id = p_event.party_id),
    rules.format_time(p_event.occurred_at));
end
$$;
comment on function rules.render_event(core.event) is 'An event as JSON.';
