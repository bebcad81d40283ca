-- A test event as JSON, as src/formats/event-json.ts writes real ones. Its IDs are new, so they
-- exist nowhere, and its business day is before every statement. core.test_delivery refuses an
-- unknown type.
create or replace function rules.render_test_event(
  p_event_id uuid, p_event_type text, p_at timestamptz, p_is_expanded boolean)
returns text
language plpgsql volatile as $$
declare
  v_is_coupon    boolean := p_event_type like 'coupon.%';
  v_is_movement  boolean := p_event_type in ('coupon.redeemed', 'coupon.reversed');
  v_subject      text;
  v_time         text := rules.format_time(p_at);
begin
  case
    when v_is_coupon then
      v_subject := format('"coupon_id":"%s","redemption_id":%s',
        rules.format_id('cpn', rules.make_id()),
        case p_event_type
          when 'coupon.redeemed' then '"' || rules.format_id('red', p_event_id) || '"'
          when 'coupon.reversed' then '"' || rules.format_id('red', rules.make_id()) || '"'
          else 'null'
        end);
    when p_event_type in ('batch.generated', 'allocation.completed') then
      v_subject := format('"batch_id":"%s"', rules.format_id('bat', rules.make_id()));
    else
      v_subject := format('"business_date":"1970-01-01","distributor_party_id":"%s"',
        rules.format_id('pty', rules.make_id()));
  end case;
  return format('{"event_id":"%s","event_type":"%s",%s,"occurred_at":"%s"%s%s}',
    rules.format_id('evt', p_event_id), p_event_type, v_subject, v_time,
    case when v_is_coupon then format(',"recorded_at":"%s"', v_time) end,
    case when v_is_coupon and p_is_expanded then ',"data":' || json_build_object(
      'batch_id', rules.format_id('bat', rules.make_id()),
      'template_id', rules.format_id('tpl', rules.make_id()),
      'merchant_id', case when v_is_movement then rules.format_id('mch', rules.make_id()) end,
      'store', null, 'terminal', null, 'order_id', null, 'order_amount', null,
      'discount_amount', case when v_is_movement then 1 end,
      'currency', case when v_is_movement then 'EUR' end,
      'reversal_id', case p_event_type
        when 'coupon.reversed' then rules.format_id('rvs', p_event_id)
      end) end);
end
$$;
