-- The data of a coupon event, as JSON, for a subscriber that asks for it. It never changes, so each
-- attempt and each page has the same data. The amounts of a reversal are those of its redemption,
-- not negative. An expiry or a void has only the batch and the template.
create or replace function rules.describe_data(
  p_tenant_id int, p_event_id uuid, p_event_type text, p_coupon_id uuid)
returns text
language plpgsql stable as $$
declare
  v_redemption_id  uuid := case p_event_type
    when 'coupon.redeemed' then p_event_id
    when 'coupon.reversed' then core.find_reversed_redemption(p_tenant_id, p_event_id)
  end;
begin
  return (
    select json_build_object(
      'batch_id', b.external_id, 'template_id', t.external_id, 'merchant_id', m.external_id,
      'store', r.store, 'terminal', r.terminal, 'order_id', r.order_id,
      'order_amount', rules.format_amount(r.order_minor, u.decimals, n.amount_unit),
      'discount_amount', rules.format_amount(r.discount_minor, u.decimals, n.amount_unit),
      'currency', r.currency, 'reversal_id', case p_event_type
        when 'coupon.reversed' then rules.format_id('rvs', p_event_id)
      end)
    from core.coupon c
    join core.tenant n on n.tenant_id = c.tenant_id
    join core.batch b on b.tenant_id = c.tenant_id and b.batch_id = c.batch_id
    join core.template t on t.tenant_id = b.tenant_id and t.template_id = b.template_id
    left join core.redemption r
      on r.tenant_id = c.tenant_id and r.redemption_id = v_redemption_id
    left join core.merchant m on m.tenant_id = r.tenant_id and m.merchant_id = r.merchant_id
    left join core.currency u on u.currency = r.currency
    where c.tenant_id = p_tenant_id and c.coupon_id = p_coupon_id);
end
$$;
