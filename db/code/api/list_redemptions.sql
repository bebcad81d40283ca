-- GET /v1/redemptions lists the redemptions of a merchant: those of an order, or all redemptions
-- and reversals in the order in which the sequencer took them. That order only grows at its end, so
-- a stored cursor misses nothing and reads nothing twice, whatever commits late. A change is listed
-- with the redemption as it is now.
create or replace function api.list_redemptions(p_call core.call) returns core.answer
language plpgsql stable as $$
declare
  v_merchant_id  int := rules.find_merchant(p_call, p_call.args ->> 'merchant');
  v_cursor       text := p_call.args ->> 'cursor';
  v_now          timestamptz := clock_timestamp();
  v_after        bigint := 0;
  v_read         record;
begin
  if v_merchant_id is null then
    return rules.refuse_not_found(p_call, 'merchant');
  end if;
  if p_call.args ->> 'order_id' is not null then
    return rules.succeed(format('{"ok":true,"redemptions":[%s],"next_cursor":null}', (
      select string_agg(
               rules.render_redemption(p_call, o.redemption_id, v_now), ','
               order by o.started_at desc)
      from (
        select r.redemption_id, r.started_at
        from core.redemption r
        where r.merchant_id = v_merchant_id and r.order_id = p_call.args ->> 'order_id'
        order by r.started_at desc
        limit 100) o)));
  end if;
  if v_cursor is not null then
    v_after := rules.parse_cursor(v_cursor);
    if v_after is null
       or v_after > rules.find_last_change(p_call.tenant_id, v_merchant_id)
    then
      return rules.refuse_field(p_call, 'cursor', 'must be the next_cursor of an earlier page');
    end if;
  end if;
  v_read := rules.read_changes(
    p_call.tenant_id, v_merchant_id, v_after, (p_call.args ->> 'from')::timestamptz,
    (p_call.args ->> 'to')::timestamptz, coalesce((p_call.args ->> 'limit')::int, 100));
  return rules.succeed(format('{"ok":true,"redemptions":[%s],"next_cursor":"%s"}', (
    select string_agg(rules.render_change(p_call, l, v_now), ',' order by x.place)
    from unnest(v_read.event_seqs) with ordinality x (event_seq, place)
    join core.ledger_entry l on l.event_seq = x.event_seq),
    coalesce(rules.format_cursor(v_read.last_position), v_cursor, rules.format_cursor(0))));
end
$$;
