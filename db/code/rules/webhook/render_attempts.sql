-- The last 100 attempts of a subscriber, newest first. next_attempt_at belongs to the newest
-- attempt of an event that waits; a pause that the subscriber asked for delays it. The error of an
-- attempt names our addresses, so a subscriber sees only its kind.
create or replace function rules.render_attempts(p_tenant_id int, p_party_id int) returns text
language plpgsql stable as $$
begin
  return (
    select '[' || coalesce(string_agg(format(
      '{"event_id":"%s","event_type":"%s","attempted_at":"%s","http_status":%s,"reason":%s,'
      '"next_attempt_at":%s}',
      rules.format_id('evt', a.event_id), coalesce(a.test_event_type, e.event_type),
      rules.format_time(a.attempted_at), coalesce(a.http_status::text, 'null'),
      coalesce(to_json(case
        when a.http_status between 200 and 299 then null
        else coalesce('HTTP ' || a.http_status, a.reason, 'the request failed')
      end)::text, 'null'),
      coalesce('"' || rules.format_time(greatest(d.next_attempt_at, w.paused_until)) || '"',
        'null')),
      ',' order by a.place), '') || ']'
    from (
      select x.*, row_number() over (order by x.attempted_at desc, x.attempt_id desc) as place,
             row_number() over (
               partition by x.event_id order by x.attempted_at desc, x.attempt_id desc) as turn
      from (
        select r.*
        from core.delivery_attempt r
        where r.tenant_id = p_tenant_id and r.party_id = p_party_id
        order by r.attempted_at desc, r.attempt_id desc
        limit 100) x) a
    left join rules.event e on e.tenant_id = a.tenant_id and e.event_id = a.event_id
    left join core.delivery d
      on d.tenant_id = a.tenant_id
     and d.party_id = a.party_id
     and d.event_id = a.event_id
     and d.parked_at is null
     and a.turn = 1
    left join core.webhook w
      on w.tenant_id = d.tenant_id
     and w.party_id = d.party_id);
end
$$;
