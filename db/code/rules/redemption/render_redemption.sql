-- A redemption as get_redemption and list_redemptions show it, in its effective state: a lock past
-- its end is LAPSED.
create or replace function rules.render_redemption(
  p_call core.call, p_redemption_id uuid, p_now timestamptz)
returns text
language plpgsql stable as $$
begin
  return (
    select to_json(s)
    from (
      select rules.format_id('red', r.redemption_id) as redemption,
             case
               when r.status = 'LOCKED' and r.lock_expires_at <= p_now then 'LAPSED'
               else r.status
             end as status,
             rules.format_id('cpn', r.coupon_id) as coupon_id, b.external_id as batch_id,
             t.external_id as template_id, m.external_id as merchant_id, r.store, r.terminal,
             r.order_id,
             rules.format_amount(r.order_minor, u.decimals, p_call.amount_unit) as order_amount,
             rules.format_amount(r.discount_minor, u.decimals, p_call.amount_unit)
               as discount_amount,
             r.currency, r.lock_request_id, rules.format_time(r.started_at) as started_at,
             rules.format_time(r.lock_expires_at) as lock_expires_at,
             rules.format_time(r.redeemed_at) as redeemed_at,
             rules.format_time(v.reversed_at) as reversed_at,
             rules.format_id('rvs', v.reversal_id) as reversal, v.reason
      from core.redemption r
      left join core.reversal v
        on v.tenant_id = r.tenant_id and v.redemption_id = r.redemption_id
      left join core.coupon c on c.tenant_id = r.tenant_id and c.coupon_id = r.coupon_id
      left join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
      left join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
      left join core.merchant m on m.tenant_id = r.tenant_id and m.merchant_id = r.merchant_id
      left join core.currency u on u.currency = r.currency
      where r.tenant_id = p_call.tenant_id and r.redemption_id = p_redemption_id) s);
end
$$;
