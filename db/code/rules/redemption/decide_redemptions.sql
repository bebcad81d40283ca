-- Decides the locks or redeems of a group. Each call gets a refusal or the terms of a grant. A call
-- that gets neither is handed back, because another session holds a row that it needs, or an
-- earlier call of this group names the same coupon. p_held lists the calls whose rows are held.
-- p_lapsed lists those whose coupon has an expired lock, which only a quote leaves as it is.
--
-- It is in SQL, stable and without `set`, so that PostgreSQL inlines it into the calling statement.
-- `offset 0` makes PostgreSQL compute each value once. The reasons are in the order of the error
-- table.
create or replace function rules.decide_redemptions(
  p_calls core.call[], p_ordinals int[], p_held int[], p_lapsed int[], p_now timestamptz,
  out call core.call, out is_granted boolean, out refusal core.answer, out merchant_id int,
  out coupon_id uuid, out distributor_id int, out currency text, out decimals int,
  out discount_minor bigint, out order_minor bigint, out lock_ends_at timestamptz)
returns setof record
language sql stable
begin atomic
  select d.call, d.is_held and d.code is null,
         case when d.is_held or d.code = 'NOT_FOUND' then
           case
             when (d.misplaced).code is not null then d.misplaced
             when d.code is not null then rules.refuse_redemption(
               d.call, d.code, d.merchant_id, d.coupon, d.template, d.order_minor, d.decimals)
           end
         end,
         d.merchant_id, (d.coupon).coupon_id, d.distributor_id, (d.template).currency, d.decimals,
         case when d.is_held and d.code is null then
           rules.compute_discount(
             d.template,
             case when (d.template).skus is null then d.order_minor else (d.ordered).total end,
             d.order_minor)
         end,
         d.order_minor, p_now + make_interval(secs => (d.template).lock_ttl_seconds)
  from (
    select m.*, case
             when m.merchant_id is null or (m.coupon).coupon_id is null then 'NOT_FOUND'
             when (m.misplaced).code is not null then (m.misplaced).code
             when m.is_in_currency and (m.order_minor is null and m.order_amount is not null
                                        or (m.ordered).wrong_item is not null)
               then 'INVALID_REQUEST'
             else coalesce(
               rules.check_redeemable(
                 m.coupon, m.batch_status,
                 (m.template).is_for_all_merchants or rules.is_in_scope(
                   (m.call).tenant_id, (m.template).template_id, m.merchant_id),
                 m.is_cancelled, (m.call).ordinal = any (p_lapsed), p_now),
               case
                 when not m.is_in_currency then 'CURRENCY_MISMATCH'
                 when rules.find_missing(
                   m.template, m.order_minor, (m.call).args -> 'items', (m.ordered).unpriced)
                   is not null then 'DISCOUNT_NOT_COMPUTABLE'
                 when m.order_minor < (m.template).min_order_minor then 'ORDER_BELOW_MINIMUM'
                 when (m.template).skus is not null and (m.ordered).matching = 0
                   then 'NO_ELIGIBLE_ITEMS'
               end)
           end as code
    from (
      select c.*, (c.call).ordinal = any (p_held) as is_held,
             ((c.call).args ->> 'currency' <> (c.template).currency) is not true as is_in_currency,
             rules.parse_amount(c.order_amount, c.decimals, (c.call).amount_unit) as order_minor,
             rules.read_items(
               (c.call).args -> 'items', coalesce((c.template).skus, '{}'), c.decimals,
               (c.call).amount_unit) as ordered,
             case
               when (c.call).variant = 'B' and c.merchant_id is not null
                    and (c.coupon).coupon_id is not null
                 then rules.check_place(c.call, c.merchant_id)
             end as misplaced
      from rules.read_redemption_cases(p_calls, p_ordinals) c
      offset 0) m
    offset 0) d;
end;
