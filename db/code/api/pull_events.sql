-- GET /v1/events returns a page of the caller's feed. One writer assigns positions in order, so no
-- event is ever added before a cursor, and a full page never changes while its events are kept. A
-- page shorter than its limit can still grow. Cursors are encoded positions, so that clients do not
-- calculate with them. The HTTP layer formats the events (rules.describe_event). They have data if
-- the call asks for it.
create or replace function api.pull_events(p_call core.call) returns core.answer
language plpgsql stable as $$
declare
  v_cursor  text := p_call.args ->> 'cursor';
  v_limit   int := coalesce((p_call.args ->> 'limit')::int, 100);
  v_expand  boolean := coalesce((p_call.args ->> 'expand')::boolean, false);
  v_after   bigint := 0;
  v_last    bigint;
  v_read    record;
  v_events  text;
  v_begin   int := 1;
  v_end     int;
begin
  v_last := coalesce((
    select f.last_position
    from core.feed f
    where f.tenant_id = p_call.tenant_id and f.party_id = p_call.caller_id),
    rules.find_feed_base(p_call.tenant_id));
  if v_cursor is not null then
    v_after := rules.parse_cursor(v_cursor);
    if v_after is null or v_after > v_last then
      return rules.refuse_field(p_call, 'cursor', 'must be the next_cursor of an earlier page');
    end if;
  end if;
  v_read := rules.read_feed(p_call.tenant_id, p_call.caller_id, v_after, v_limit);
  foreach v_end in array v_read.runs loop
    v_events := concat_ws(',', v_events, (
      select string_agg(
        case
          when v_expand then rules.describe_expanded_event(e)
          else rules.describe_event(e)
        end, ',' order by e.event_seq)
      from rules.event e
      where e.event_seq = any (v_read.event_seqs[v_begin : v_end])));
    v_begin := v_end + 1;
  end loop;
  return rules.succeed(format('{"events":[%s],"next_cursor":"%s"}',
    v_events, coalesce(
      rules.format_cursor(v_read.last_position), v_cursor, rules.format_cursor(0))));
end
$$;
