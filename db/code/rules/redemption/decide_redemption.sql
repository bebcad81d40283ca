-- Decides a lock or redeem: the amounts of a grant in minor units, or a refusal, which has no
-- discount. The reasons are in the order of the error table, except LOCK_CANCELLED, which the
-- calling function and rules.refuse_redemption find.
create or replace function rules.decide_redemption(
  p_call core.call, p_merchant_id int, p_coupon core.coupon, p_batch core.batch,
  p_template core.template, p_now timestamptz,
  out refusal core.answer, out order_minor bigint, out discount_minor bigint)
language plpgsql stable as $$
declare
  v_amount          numeric := (p_call.args ->> 'order_amount')::numeric;
  v_is_in_currency  boolean := (p_call.args ->> 'currency' <> p_template.currency) is not true;
  v_ordered         core.ordered;
  v_code            text;
begin
  if p_call.variant = 'B' then
    refusal := rules.check_place(p_call, p_merchant_id);
    if refusal.http_status is not null then
      return;
    end if;
  end if;
  order_minor := rules.parse_amount(v_amount, p_template.decimals, p_call.amount_unit);
  if p_call.args ? 'items' then
    v_ordered := rules.read_items(
      p_call.args -> 'items', coalesce(p_template.skus, '{}'), p_template.decimals,
      p_call.amount_unit);
  end if;
  v_code := case
    when v_is_in_currency and (
      order_minor is null and v_amount is not null or v_ordered.wrong_item is not null)
      then 'INVALID_REQUEST'
    when not p_template.is_for_all_merchants
         and not rules.is_in_scope(p_call.tenant_id, p_template.template_id, p_merchant_id)
      then 'MERCHANT_NOT_IN_SCOPE'
    when p_batch.suspended_at is not null then 'BATCH_SUSPENDED'
    when p_coupon.status = 'VOIDED' then 'COUPON_VOIDED'
    when p_coupon.status = 'REDEEMED' then 'COUPON_REDEEMED'
    -- before LOCKED: after valid_to, waiting for another lock to end is of no use
    when p_coupon.status = 'EXPIRED' or p_coupon.valid_to <= p_now then 'COUPON_EXPIRED'
    when p_coupon.status = 'LOCKED' then 'COUPON_LOCKED'
    when p_batch.status <> 'ALLOCATED' then 'COUPON_NOT_RELEASED'
    when p_coupon.valid_from > p_now then 'COUPON_NOT_YET_VALID'
    when not v_is_in_currency then 'CURRENCY_MISMATCH'
    when order_minor is null
         and (p_template.discount_type = 'percent' or p_template.min_order_minor is not null)
         or p_template.skus is not null and (v_ordered is null or v_ordered.unpriced > 0)
      then 'DISCOUNT_NOT_COMPUTABLE'
    when order_minor < p_template.min_order_minor then 'ORDER_BELOW_MINIMUM'
    when p_template.skus is not null and v_ordered.matching = 0 then 'NO_ELIGIBLE_ITEMS'
  end;
  if v_code is null then
    discount_minor := rules.compute_discount(
      p_template, case when p_template.skus is null then order_minor else v_ordered.total end,
      order_minor);
  else
    refusal := rules.refuse_redemption(
      p_call, v_code, p_coupon, p_template, v_ordered, order_minor);
  end if;
end
$$;
